import { describe, expect, test } from 'vitest'
import { curl, jobsPath, json, startRig } from './rig.ts'

const markup = '<script>alert(1)</script>'

describe('M11 what a job says in markup', () => {
  test('M11 travels as data: nothing is ever served as a page', async () => {
    const rig = await startRig()
    const params = { command: { argv: [markup], env: { A: markup } } }
    const made = await curl(rig, jobsPath('EnqueueJob'), { headers: json, body: JSON.stringify({ params }) })
    const { jobId } = JSON.parse(made.text) as { jobId: string }
    const got = await curl(rig, jobsPath('GetJob'), { headers: json, body: JSON.stringify({ jobId }) })
    expect(got.headers['content-type']).toMatch(/^application\/json/)
    expect(JSON.parse(got.text)).toMatchObject({ job: { params: { command: { argv: [markup] } } } })
  })

  test.each(['/', `/${markup}`, '/index.html', '/healthz', '/readyz'])(
    'M11 a browser that asks for %s gets no page',
    async (path) => {
      const rig = await startRig()
      const answer = await curl(rig, encodeURI(path), { method: 'GET', headers: { accept: 'text/html' } })
      expect(answer.headers['content-type']).toBe('application/json')
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.text).not.toContain('<script')
    },
  )

  test('M11 a call that is no POST has no answer at all', async () => {
    const rig = await startRig()
    const answer = await curl(rig, `${jobsPath('GetJob')}?${encodeURI(markup)}`, { method: 'GET' })
    expect(answer).toMatchObject({ status: 405, text: '' })
  })

  test('M11 an error that repeats what was sent repeats it as data', async () => {
    const rig = await startRig()
    const body = JSON.stringify({ queue: markup, params: { command: { argv: ['true'] } } })
    const answer = await curl(rig, jobsPath('EnqueueJob'), { headers: json, body })
    expect(answer.status).toBe(404)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'not_found' })
  })
})
