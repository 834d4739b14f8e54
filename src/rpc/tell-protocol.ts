import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'

/** What every HTTP/2 connection begins with, and no request of HTTP/1 does. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/**
 * Holds the first bytes of a connection aside until they tell which HTTP it speaks, puts them back and hands it on. A connection
 * that says too little within `timeoutMs` is closed.
 */
export const tellProtocol = (
  clock: Clock,
  socket: Socket,
  timeoutMs: number,
  told: (protocol: 'http/1' | 'http/2') => void,
): void => {
  let held = Buffer.alloc(0)
  const look = () => {
    const bytes: Buffer | null = socket.read()
    if (bytes === null) return
    // At most the preface is ever held: the first byte that differs ends the waiting.
    held = Buffer.concat([held, bytes])
    const known = Math.min(held.length, preface.length)
    const isPreface = held.subarray(0, known).equals(preface.subarray(0, known))
    if (isPreface && known < preface.length) return
    leave()
    socket.unshift(held)
    told(isPreface ? 'http/2' : 'http/1')
  }
  const giveUp = () => {
    leave()
    socket.destroy()
  }
  const leave = () => {
    clock.clearTimeout(timer)
    socket.off('readable', look).off('end', giveUp).off('error', giveUp).off('close', giveUp)
  }
  const timer = clock.setTimeout(giveUp, timeoutMs)
  socket.on('readable', look).on('end', giveUp).on('error', giveUp).on('close', giveUp)
}
