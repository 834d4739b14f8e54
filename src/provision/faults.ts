import { Fault, type FaultEntry } from '../kernel/fault.ts'

/** A plan has more in it than one template can hold. */
export class TemplateLimit extends Fault {
  readonly code = 'TEMPLATE_LIMIT'
  readonly retry = 'never'
  constructor(resources: number, limit: number) {
    super(`the template would have ${resources} resources, and the service takes ${limit}`, {
      field: 'jobs.queues',
      limit,
    })
  }
}

export const provisionFaults: Readonly<Record<string, FaultEntry>> = {
  TEMPLATE_LIMIT: {
    meaning: 'The configured queues make more resources than one CloudFormation template can hold.',
    next: 'No template was written.',
    advice: 'Let `millrace provision` make them directly, or split the queues over several templates.',
  },
}
