/** Items in their order, in chunks within the limits: both are checked before adding. An item is never split. */
export const pack = <Item>(
  items: readonly Item[],
  limit: { readonly items: number; readonly bytes?: number },
  sizeOf: (item: Item) => number = () => 0,
): readonly (readonly Item[])[] => {
  const chunks: Item[][] = []
  let chunk: Item[] = []
  let bytes = 0
  for (const item of items) {
    const size = sizeOf(item)
    const isFull = chunk.length === limit.items || (limit.bytes !== undefined && bytes + size > limit.bytes)
    if (chunk.length === 0 || isFull) {
      chunk = []
      chunks.push(chunk)
      bytes = 0
    }
    chunk.push(item)
    bytes += size
  }
  return chunks
}
