import { defineConfig } from 'vitest/config'

/** The tests that need the servers of scripts/test-real.ts. */
export default defineConfig({
  test: {
    include: ['test/real/**/*.test.ts'],
    // Stories start the command line as it is shipped.
    globalSetup: ['test/support/bundle.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
