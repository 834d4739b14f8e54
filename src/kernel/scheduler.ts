import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs'
import type { Clock } from './clock.ts'

/** Our clock as an RxJS scheduler. Every RxJS operator that keeps time gets one of these (style P2). */
export const createScheduler = (clock: Clock): SchedulerLike => {
  const schedule = <State>(
    work: (this: SchedulerAction<State>, state?: State) => void,
    delayMs = 0,
    state?: State,
  ): Subscription => {
    const action = new Subscription() as SchedulerAction<State>
    const arm = (next: State | undefined, ms: number) => {
      const timer = clock.setTimeout(() => {
        cancel.unsubscribe()
        action.remove(cancel)
        if (!action.closed) work.call(action, next)
      }, ms)
      const cancel = new Subscription(() => clock.clearTimeout(timer))
      action.add(cancel)
    }
    action.schedule = (next, ms = 0) => {
      arm(next, ms)
      return action
    }
    arm(state, delayMs)
    return action
  }
  return { now: () => clock.now(), schedule }
}
