// Makes dist: the command line as a bundle in dist/bin, and the library with its types in dist/src. With --bundle only the
// bundle, which is what a clone needs for `npx millrace`.

import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

const checkout = join(import.meta.dirname, '..')
const bundle = join(checkout, 'dist/bin')

/** What is loaded as it is installed: native code finds its files beside itself, and the cloud is for those who ask for it. */
const external = ['lmdb', 'msgpackr', '@aws-sdk/*', '@smithy/*', 'pino']

/** Packages in the older form of modules ask for their parts by `require`. */
const banner =
  "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);"

/** Messages of the schema library in fifty languages, of which only one is ever used and loaded by itself. */
const withoutLanguages: Plugin = {
  name: 'without languages',
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: 'export {}' }))
  },
}

/** Commands and everything heavy stay in files of their own, which are read when they are needed. */
const bundleCommandLine = async (): Promise<void> => {
  const draft = `${bundle}.${process.pid}`
  try {
    await build({
      entryPoints: [
        { in: join(checkout, 'src/cli/bin.ts'), out: 'millrace' },
        // The doctor of the embedded store starts a process with this file, beside its own.
        { in: join(checkout, 'src/tables/lmdb/check.ts'), out: 'parts/check' },
      ],
      outdir: draft,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      chunkNames: 'parts/[name]-[hash]',
      external,
      plugins: [withoutLanguages],
      // Names of faults are for people to read; white space is not.
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: 'none',
      banner: { js: banner },
      logLevel: 'warning',
    })
    const program = join(draft, 'millrace.js')
    writeFileSync(program, `#!/usr/bin/env node\n${readFileSync(program, 'utf8')}`)
    chmodSync(program, 0o755)
    rmSync(bundle, { recursive: true, force: true })
    renameSync(draft, bundle)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** The library as modules with their types. Generated code is JavaScript already and only has to stand beside them. */
const compileLibrary = (): void => {
  const compiler = join(checkout, 'node_modules', '.bin', 'tsc')
  const { status, error } = spawnSync(compiler, ['-p', 'tsconfig.build.json'], { cwd: checkout, stdio: 'inherit' })
  if (status !== 0) throw new Error('the library does not compile', { cause: error })
  cpSync(join(checkout, 'api/gen'), join(checkout, 'dist/api/gen'), { recursive: true })
}

await bundleCommandLine()
if (!process.argv.includes('--bundle')) compileLibrary()
