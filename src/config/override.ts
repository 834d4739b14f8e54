import type { z } from 'zod'

export type Overridden<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly path: readonly string[]; readonly reason: string }

/** Settings with some of them replaced, checked as a whole. Without anything to replace it is the same object again. */
export const override = <T extends object>(
  section: z.ZodType<T>,
  own: T,
  asked: Partial<T> | undefined,
): Overridden<T> => {
  if (asked === undefined) return { ok: true, value: own }
  const parsed = section.safeParse({ ...own, ...asked })
  if (parsed.success) return { ok: true, value: parsed.data }
  const [issue] = parsed.error.issues
  return { ok: false, path: issue?.path.map(String) ?? [], reason: issue?.message ?? 'is not valid' }
}
