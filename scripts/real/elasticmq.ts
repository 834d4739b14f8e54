import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServerKind } from './server.ts'

/** ElasticMQ speaks SQS; with strict limits it refuses what the service refuses. */
export const elasticmq: ServerKind = {
  name: 'elasticmq',
  variable: 'MILLRACE_TEST_SQS',
  address: (port) => `http://127.0.0.1:${port}`,
  javaArguments: async ({ jars, port, scratch }) => {
    const config = join(scratch, 'elasticmq.conf')
    await writeFile(config, configuration(port))
    return [`-Dconfig.file=${config}`, '-classpath', join(jars, '*'), 'org.elasticmq.server.Main']
  },
  answers: async (address, signal) => {
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.ListQueues' },
      body: '{}',
      signal,
    })
    await response.arrayBuffer()
    return response.ok
  },
}

const configuration = (port: number): string => `include classpath("application.conf")

node-address { protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = ${port}, sqs-limits = strict }
rest-stats { enabled = false }
`
