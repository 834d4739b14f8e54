import { localTablesContract } from '../contract/local-tables.ts'
import { tablesContract } from '../contract/tables.ts'
import { openAt, tempFolder } from './support/directory.ts'

const open = async () => {
  const { path, remove } = tempFolder()
  const tables = await openAt(path)
  const end = async () => {
    await tables.close()
    remove()
  }
  return { tables, end }
}

tablesContract('lmdb', open)
localTablesContract('lmdb', open)
