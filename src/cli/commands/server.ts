import type { CliContext } from '../context.ts'
import { serve, type UpArgs } from './up.ts'

/** The server alone; workers come from elsewhere. */
export const run = (context: CliContext, args: UpArgs): Promise<number> => serve(context, args, false)
