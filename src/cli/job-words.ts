export const priorities = ['high', 'normal', 'low'] as const
export type Priority = (typeof priorities)[number]

export const jobStates = ['SCHEDULED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const
export type JobState = (typeof jobStates)[number]

export const isFinal = (state: string): boolean => state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELLED'
