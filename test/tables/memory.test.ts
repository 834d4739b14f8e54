import { createMemoryTables } from '../../src/tables/memory.ts'
import { localTablesContract } from '../contract/local-tables.ts'
import { contractSchemas, tablesContract } from '../contract/tables.ts'

const open = async () => {
  const tables = createMemoryTables(contractSchemas)
  return { tables, end: async () => {} }
}

tablesContract('memory', open)
localTablesContract('memory', open)
