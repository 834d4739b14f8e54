/** FNV-1a: spreads texts evenly over a few places, the same way on every machine and for ever. */
export const spread = (text: string, over: number): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return (hash >>> 0) % over
}
