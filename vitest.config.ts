import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/real/**'],
    // Stories start the command line as it is shipped.
    globalSetup: ['test/support/bundle.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
