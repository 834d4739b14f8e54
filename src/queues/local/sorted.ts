/** Few enough things in order: an array, a binary search, and a head that moves instead of the whole array. */
export interface Sorted<Thing> {
  readonly size: number
  first(): Thing | undefined
  last(): Thing | undefined
  /** Puts it in its place. One that compares equal is replaced. */
  insert(thing: Thing): void
  /** Takes out the one that compares equal. */
  remove(like: Thing): Thing | undefined
  shift(): Thing | undefined
  pop(): Thing | undefined
}

/** How many empty places may stand in front before they are cut off. */
const slackMax = 1_024

export const createSorted = <Thing>(compare: (a: Thing, b: Thing) => number): Sorted<Thing> => {
  let things: (Thing | undefined)[] = []
  let head = 0

  /** The first position that is not below `thing`. New things mostly belong at the end, so that is tried first. */
  const position = (thing: Thing): number => {
    const last = things.length - 1
    if (last < head || compare(things[last] as Thing, thing) < 0) return things.length
    let low = head
    let high = last
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compare(things[middle] as Thing, thing) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
  const isAt = (index: number, thing: Thing) => index < things.length && compare(things[index] as Thing, thing) === 0

  return {
    get size() {
      return things.length - head
    },
    first: () => things[head],
    last: () => (things.length > head ? things[things.length - 1] : undefined),
    insert: (thing) => {
      const index = position(thing)
      if (isAt(index, thing)) things[index] = thing
      else if (index === things.length) things.push(thing)
      else if (index === head && head > 0) things[--head] = thing
      else things.splice(index, 0, thing)
    },
    remove: (like) => {
      const index = position(like)
      return isAt(index, like) ? things.splice(index, 1)[0] : undefined
    },
    shift: () => {
      if (head === things.length) return undefined
      const thing = things[head]
      things[head++] = undefined
      if (head >= slackMax && head * 2 >= things.length) {
        things = things.slice(head)
        head = 0
      }
      return thing
    },
    pop: () => (things.length > head ? things.pop() : undefined),
  }
}
