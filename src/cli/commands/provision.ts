import type { CliContext, ProvisionStep } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { UsageInvalid } from '../faults.ts'
import { jsonLine, plainText } from '../render/plain-text.ts'
import { type GlobalFlags, loadSettings } from '../settings.ts'

export interface ProvisionArgs extends GlobalFlags {
  readonly dryRun?: boolean
  readonly cloudformation?: boolean
}

/** Makes the tables and queues that the configuration names. What is there as it should be is left alone. */
export const run = async (context: CliContext, args: ProvisionArgs): Promise<number> => {
  const { options } = await loadSettings(context, args)
  if (options.profile !== 'aws')
    throw new UsageInvalid(`profile ${options.profile} needs no provisioning; use --profile aws`, {
      command: 'provision',
    })
  if (args.dryRun === true && args.cloudformation === true)
    throw new UsageInvalid('--dry-run and --cloudformation do not go together: a template changes nothing by itself', {
      command: 'provision',
    })
  const provisioning = await context.backend.provision(options)
  const tell = async (step: ProvisionStep) => {
    await context.stdout.write(args.json === true ? jsonLine(step) : stepLine(step, args.dryRun === true))
  }
  if (args.cloudformation === true) await context.stdout.write(`${provisioning.template().trimEnd()}\n`)
  else if (args.dryRun === true) for (const step of await provisioning.plan()) await tell(step)
  else {
    const told: Promise<void>[] = []
    await provisioning.apply((step) => told.push(tell(step)))
    await Promise.all(told)
  }
  return exitCodes.ok
}

const done = { create: 'created', change: 'changed', keep: 'is there' } as const
const planned = { create: 'would be created', change: 'would be changed', keep: 'is there' } as const

const stepLine = ({ resource, action, detail }: ProvisionStep, isPlan: boolean): string =>
  `${plainText(resource)} ${(isPlan ? planned : done)[action]}${detail ? `: ${plainText(detail)}` : ''}\n`
