// google.protobuf.Value ↔ JSON.

import { create } from '@bufbuild/protobuf'
import { ListValueSchema, NullValue, StructSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import { limits } from '../jobs/check.ts'
import { InputInvalid } from '../jobs/faults.ts'
import type { Json } from '../jobs/job.ts'

/** `field` names the value in the request. Depth is a limit here and not a crash; the store checks the rest. */
export const toJson = (field: string, value: Value, depth = 0): Json => {
  if (depth > limits.depth) {
    throw new InputInvalid(field, `is nested more than ${limits.depth} deep`, { limit: limits.depth })
  }
  const { kind } = value
  switch (kind.case) {
    case 'nullValue':
      return null
    case 'boolValue':
    case 'stringValue':
      return kind.value
    case 'numberValue':
      if (!Number.isFinite(kind.value)) throw new InputInvalid(field, `contains ${kind.value}, which is no JSON number`)
      return kind.value
    case 'listValue':
      return kind.value.values.map((part) => toJson(field, part, depth + 1))
    case 'structValue':
      return toObject(field, kind.value.fields, depth + 1)
    default:
      throw new InputInvalid(field, 'contains a value of no kind')
  }
}

const toObject = (field: string, fields: Readonly<Record<string, Value>>, depth: number): Json => {
  // The decoder assigns each member to a plain object, and this name then replaces its prototype instead of being one.
  if (Object.getPrototypeOf(fields) !== Object.prototype) {
    throw new InputInvalid(field, "contains the name '__proto__', which is refused")
  }
  const object: Record<string, Json> = Object.create(null)
  for (const name of Object.keys(fields)) object[name] = toJson(field, fields[name] as Value, depth)
  return object
}

/** Of what the store gave: JSON, within its limits. Members that are not JSON are left out, as JSON does it. */
export const toValue = (json: unknown): Value => create(ValueSchema, { kind: kindOf(json) })

const kindOf = (json: unknown): Value['kind'] => {
  if (typeof json === 'boolean') return { case: 'boolValue', value: json }
  if (typeof json === 'string') return { case: 'stringValue', value: json }
  if (typeof json === 'number' && Number.isFinite(json)) return { case: 'numberValue', value: json }
  if (Array.isArray(json)) {
    return { case: 'listValue', value: create(ListValueSchema, { values: json.map(toValue) }) }
  }
  if (typeof json !== 'object' || json === null) return { case: 'nullValue', value: NullValue.NULL_VALUE }
  const members = Object.entries(json).filter(([name, part]) => name !== '__proto__' && part !== undefined)
  const fields = Object.fromEntries(members.map(([name, part]) => [name, toValue(part)]))
  return { case: 'structValue', value: create(StructSchema, { fields }) }
}
