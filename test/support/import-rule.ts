// The import rule: imports point down, vendors only at the bottom, nobody imports a root. The table is the rule; the rest
// only reads it. The first row that fits a file counts, so narrow rows stand above wide ones.

export interface Layer {
  /** Which files the row is for: paths, with `*` for part of a name and `**` for anything below. */
  readonly files: string | readonly string[]
  /** What they may import, besides what is open to all of src. */
  readonly imports?: readonly string[]
  /** What they may import with `import type` alone, so that nothing is left at run time. */
  readonly types?: readonly string[]
  /** Packages, besides those that are open to all of src. */
  readonly vendors?: readonly string[]
  /** What stays forbidden although `imports` covers it. */
  readonly except?: readonly string[]
  /** Set for what does not even get what is open to all of src. */
  readonly closed?: true
}

/** An adapter is a file, and a folder of the same name when it needs more than one. */
const adapter = (path: string): readonly string[] => [`src/${path}.ts`, `src/${path}/**`]
const vendorAdapters = ['tables/lmdb', 'tables/dynamodb', 'queues/sqs', 'consume/kafka', 'consume/event-hubs'].flatMap(
  adapter,
)
const notThese = (path: string): readonly string[] => vendorAdapters.filter((other) => !adapter(path).includes(other))

/** What an adapter may import: its own files, the port and what lies around it, its vendor, and no other adapter. */
const vendorRow = (path: string, vendors: readonly string[]): Layer => {
  const folder = path.split('/', 1)[0]
  return { files: adapter(path), imports: [`src/${folder}/*`, `src/${path}/**`], vendors, except: notThese(path) }
}

const layers: readonly Layer[] = [
  { files: 'machines/**', imports: ['machines/**'], types: ['src/**'], vendors: ['xstate'], closed: true },
  { files: 'src/kernel/**', imports: ['machines/external.ts'] },
  { files: 'src/config/**', imports: ['src/config/**'], vendors: ['zod', 'yaml'] },
  { files: 'src/telemetry/**', imports: ['src/telemetry/**'], vendors: ['pino'] },
  // A port may name the faults of its own folder, as types.
  { files: 'src/queues/port.ts', types: ['src/kernel/**', 'src/queues/faults.ts', 'src/tables/port.ts'], closed: true },
  { files: 'src/tables/port.ts', types: ['src/kernel/**', 'src/tables/faults.ts'], closed: true },
  {
    files: 'src/consume/port.ts',
    types: ['src/kernel/**', 'src/consume/faults.ts', 'src/consume/item.ts'],
    closed: true,
  },
  { files: 'src/consume/item.ts', types: ['src/kernel/**'], closed: true },
  { files: 'src/log/event.ts', types: ['src/kernel/**'], closed: true },
  vendorRow('tables/lmdb', ['lmdb', 'msgpackr']),
  vendorRow('tables/dynamodb', ['@aws-sdk/client-dynamodb', '@smithy/node-http-handler']),
  vendorRow('queues/sqs', ['@aws-sdk/client-sqs', '@smithy/node-http-handler']),
  vendorRow('consume/kafka', ['kafkajs']),
  vendorRow('consume/event-hubs', ['@azure/event-hubs']),
  { files: 'src/tables/**', imports: ['src/tables/**'], except: vendorAdapters },
  { files: adapter('queues/embedded'), imports: ['src/queues/**', 'src/tables/port.ts'], except: vendorAdapters },
  { files: 'src/queues/**', imports: ['src/queues/**'], except: vendorAdapters },
  { files: 'src/batch/**', imports: ['src/batch/**', 'machines/**'] },
  {
    files: 'src/write-behind/**',
    imports: [
      'src/write-behind/**',
      'src/batch/**',
      'src/tables/port.ts',
      'src/tables/faults.ts',
      'src/tables/condition.ts',
    ],
  },
  {
    files: 'src/jobs/**',
    imports: [
      'src/jobs/**',
      'machines/**',
      'src/tables/port.ts',
      'src/queues/port.ts',
      'src/log/keys.ts',
      // What a request may override is checked against the section that declares it.
      'src/config/override.ts',
      'src/config/sections/jobs.ts',
    ],
    types: ['src/tables/faults.ts', 'src/log/event.ts'],
  },
  {
    files: 'src/log/**',
    imports: ['src/log/**', 'api/gen/**', 'src/batch/**', 'src/tables/port.ts', 'machines/**'],
    vendors: ['@bufbuild/protobuf'],
  },
  {
    files: 'src/worker/**',
    imports: ['src/worker/**', 'machines/**', 'src/jobs/**', 'src/queues/port.ts', 'src/log/**', 'src/client/**'],
  },
  {
    files: 'src/consume/**',
    imports: ['src/consume/**', 'machines/**', 'src/batch/**', 'src/tables/port.ts'],
    except: vendorAdapters,
  },
  {
    files: 'src/scatter/**',
    imports: ['src/scatter/**', 'machines/**', 'src/batch/**', 'src/jobs/**', 'src/tables/port.ts'],
    types: ['src/worker/outcome.ts'],
  },
  {
    files: 'src/client/**',
    imports: ['src/client/**', 'api/gen/**', 'src/log/event.ts', 'src/log/stored-batch.ts'],
    // It speaks of jobs and logs in the words of the store, and nothing of the store is left in it at run time.
    types: ['src/jobs/**', 'src/log/**', 'src/worker/service.ts', 'src/queues/port.ts'],
    vendors: ['@connectrpc/*', '@bufbuild/protobuf'],
  },
  {
    files: 'src/rpc/**',
    imports: ['rpc', 'jobs', 'log', 'consume', 'scatter', 'telemetry']
      .map((name) => `src/${name}/**`)
      .concat('api/gen/**', 'machines/**'),
    types: ['src/worker/**'],
    vendors: ['@connectrpc/*', '@bufbuild/protobuf'],
    except: vendorAdapters,
  },
  // Commands are handed what they need; one file knows what stands behind it.
  {
    files: ['src/cli/wire.ts', 'src/cli/backend/**'],
    imports: ['src/**', 'api/gen/**'],
    except: ['src/sim/**', ...vendorAdapters],
  },
  {
    files: 'src/cli/**',
    imports: ['src/cli/**', 'src/config/**', 'machines/**'],
    types: ['src/jobs/job.ts', 'src/log/event.ts', 'src/log/follower.ts'],
    vendors: ['commander'],
  },
  {
    files: 'src/profiles/**',
    imports: ['profiles', 'config', 'queues', 'tables', 'consume', 'write-behind'].map((name) => `src/${name}/**`),
  },
  {
    files: 'src/provision/**',
    imports: [
      'src/provision/**',
      'src/tables/**',
      'src/queues/**',
      'src/jobs/keys.ts',
      'src/log/keys.ts',
      'src/config/**',
    ],
  },
  {
    files: 'src/sim/**',
    imports: ['src/**', 'machines/**', 'api/gen/**'],
    except: ['src/cli/**', 'src/profiles/aws.ts', 'src/profiles/embedded.ts', ...vendorAdapters],
  },
  { files: 'src/runtime.ts', imports: ['src/**', 'machines/**'], except: ['src/cli/**', 'src/sim/**', 'src/index.ts'] },
  { files: 'src/index.ts', imports: ['src/**', 'machines/**', 'api/gen/**'], except: ['src/cli/**', 'src/sim/**'] },
]

/** Open to all of src. A feature is handed an `emit` function and parsed options; it fetches neither. */
const open = {
  imports: ['src/kernel/**'],
  types: ['src/telemetry/events.ts', 'src/config/sections/**'],
  vendors: ['rxjs', 'xstate'],
}

/** Time and the process come by other ways: see kernel/clock.ts and cli. */
const closedModules = ['node:timers', 'node:timers/promises', 'node:process', 'process', 'timers', 'timers/promises']

export interface Import {
  /** What stands between the quotes. */
  readonly module: string
  /** Whether nothing is left of it at run time. */
  readonly typeOnly: boolean
}

/** The import and export-from statements and the `import()` calls of a file, comments aside. */
export const importsOf = (text: string): readonly Import[] => {
  // `import { type A }` keeps the import at run time (verbatimModuleSyntax); only `import type` erases it.
  const statements = text.matchAll(/^\s*import\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?['"]([^'"]+)['"]/gm)
  const passedOn = text.matchAll(/^\s*export\s+(type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+['"]([^'"]+)['"]/gm)
  const calls = text.matchAll(/(\btypeof\s+)?\bimport\(\s*['"]([^'"]+)['"]/g)
  return [...statements, ...passedOn, ...calls].map(([, type, module = '']) => ({
    module,
    typeOnly: type !== undefined,
  }))
}

/** What a file imports against the rule, one sentence each. `path` is from the checkout's top. */
export const importViolations = (path: string, text: string, table: readonly Layer[] = layers): readonly string[] => {
  const layer = table.find(({ files }) => [files].flat().some((pattern) => fits(pattern, path)))
  if (layer === undefined) return [`${path} has no row in the table of layers`]
  return importsOf(text)
    .filter((one) => !isAllowed(path, layer, one))
    .map(({ module, typeOnly }) => `${path} may not import ${typeOnly ? 'types of ' : ''}${module}`)
}

const isAllowed = (path: string, layer: Layer, { module, typeOnly }: Import): boolean => {
  if (!module.startsWith('.')) return isVendorAllowed(path, layer, module)
  const target = resolve(path, module)
  if (layer.except?.some((pattern) => fits(pattern, target))) return false
  const given = layer.closed ? { imports: [], types: [] } : open
  const imports = [...(layer.imports ?? []), ...given.imports]
  const types = typeOnly ? [...(layer.types ?? []), ...given.types] : []
  return [...imports, ...types].some((pattern) => fits(pattern, target))
}

const isVendorAllowed = (path: string, layer: Layer, module: string): boolean => {
  if (closedModules.includes(module)) return fits('src/cli/**', path)
  if (module.startsWith('node:')) return layer.closed !== true
  const packageName = module
    .split('/')
    .slice(0, module.startsWith('@') ? 2 : 1)
    .join('/')
  const vendors = [...(layer.vendors ?? []), ...(layer.closed ? [] : open.vendors)]
  return vendors.some((pattern) => fits(pattern, packageName))
}

/** A relative import as a path from the checkout's top. */
const resolve = (from: string, module: string): string => {
  const parts = from.split('/').slice(0, -1)
  for (const step of module.split('/')) {
    if (step === '..') parts.pop()
    else if (step !== '.') parts.push(step)
  }
  return parts.join('/')
}

const fits = (pattern: string, path: string): boolean => {
  const escaped = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('**', '\0').replaceAll('*', '[^/]*').replaceAll('\0', '.*')}$`).test(path)
}
