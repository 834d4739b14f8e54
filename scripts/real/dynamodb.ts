import { join } from 'node:path'
import { realFolder } from './folders.ts'
import type { ServerKind } from './server.ts'

/** AWS's own stand-in for DynamoDB, in memory. */
export const dynamodb: ServerKind = {
  name: 'dynamodb',
  variable: 'MILLRACE_TEST_DYNAMODB',
  address: (port) => `http://127.0.0.1:${port}`,
  javaArguments: async ({ jars, port }) => [
    // Its storage is SQLite; the native library lies among the jars.
    `-Djava.library.path=${jars}`,
    `-Dmillrace.port=${port}`,
    ...['-classpath', join(jars, '*')],
    'org.eclipse.jetty.xml.XmlConfiguration',
    join(realFolder, 'dynamodb.xml'),
  ],
  answers: async (address, signal) => {
    const response = await fetch(address, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'DynamoDB_20120810.ListTables',
        // The signature is not checked, but its form is.
        authorization: 'AWS4-HMAC-SHA256 Credential=any/20260101/local/dynamodb/aws4_request, Signature=any',
      },
      body: '{}',
      signal,
    })
    await response.arrayBuffer()
    return response.ok
  },
}
