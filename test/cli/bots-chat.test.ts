import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_USAGE, type Answerer } from '../../src/research/answering.ts';
import type { ChatTurn } from '../../src/api/research.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { listen, type Listening } from '../server/listening.ts';
import { researchDocument } from '../research/talk.ts';
import { isAtLength } from '../length.ts';
import { inProcess } from './in-process.ts';
import { createTerminal } from './terminal.ts';

let server: TestApp;
let listening: Listening;
let env: Record<string, string>;

const answerer: Answerer = {
  provider: 'openai_compatible',
  model: 'scripted',
  is_language_model: true,
  async answer({ prompt, say, call, history }) {
    if (/fail/.test(prompt)) throw new Error('canary');
    await call('read_bot', { name: '\u001B[2J' });
    say(`${history.length}: ${prompt}`);
    say('\u001B[31m!');
    const citations = [{ figure: 'risk.sharpe', value: 0.5, source: '/tasks/1/result' }];
    return { citations, usage: { ...NO_USAGE, requests: 2 }, stopped_by: null };
  },
};

beforeAll(async () => {
  server = await newTestApp({}, undefined, answerer);
  listening = await listen(server.app);
  const token = (await server.bearer('read', 'write')).replace('Bearer ', '');
  env = { SERVICE_LOCAL_SERVER_URL: listening.url, SERVICE_LOCAL_TOKEN: token };
  const headers = { authorization: `Bearer ${token}` };
  await server.send('POST', '/bots', { headers, body: { document: researchDocument('talk') } });
});

afterAll(async () => {
  listening.close();
  await server.close();
});

describe('bots chat', () => {
  it('answers a prompt, reports tools on stderr, and removes control characters', async () => {
    const { code, stdout, stderr } = await inProcess(['bots', 'chat', 'talk', 'Well?'], { env });
    expect(stdout).toBe('0: Well?!\n  risk.sharpe 0.5: /tasks/1/result\n');
    expect(stderr).toContain('read_bot {"name":"\\u001b[2J"}\n');
    expect(stderr).toContain('read_bot: invalid arguments for read_bot');
    expect(stderr).toContain('scripted: 2 requests');
    expect(stderr).toMatch(/to continue: --session [0-9a-f-]{36}/);
    expect(code).toBe(0);
  });

  it('reads the prompt from standard input, continues a session, and prints one document', async () => {
    const first = await inProcess(['bots', 'chat', 'talk', '--json'], { env, input: 'One\n' });
    const { session_id, answer } = JSON.parse(first.stdout) as Record<string, string>;
    expect(answer).toBe('0: One\u001B[31m!');
    const again = await inProcess(
      ['bots', 'chat', 'talk', 'Two', '--session', session_id!, '--json'],
      { env },
    );
    expect(JSON.parse(again.stdout)).toMatchObject({ number: 2, answer: '1: Two\u001B[31m!' });
    expect(await inProcess(['bots', 'chat', 'talk'], { env })).toMatchObject({ code: 2 });
  });

  it('asks each line of standard input as a separate question, in one session', async () => {
    const lines = Array.from({ length: isAtLength ? 30 : 5 }, (_, i) => `Question ${i + 1}?`);
    const input = `${lines.join('\n\n')}\n`;
    const { code, stdout, stderr } = await inProcess(['bots', 'chat', 'talk', '--json'], {
      env,
      input,
    });
    expect({ code, stderr: stderr.match(/error/) }).toEqual({ code: 0, stderr: null });
    const turns = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as ChatTurn);
    expect(turns.map(({ prompt }) => prompt)).toEqual(lines);
    expect(turns.map(({ number }) => number)).toEqual(lines.map((_, i) => i + 1));
    expect(new Set(turns.map(({ session_id }) => session_id)).size).toBe(1);

    const shown = await inProcess(['bots', 'chat', 'talk'], { env, input: 'One\r\nTwo' });
    expect(shown.stdout).toMatch(/^> One\n0: One[^]*\n> Two\n1: Two/);
  });

  it('asks the remaining questions after one that failed, and then fails', async () => {
    const input = 'One\nfail\nThree\n';
    const { code, stdout, stderr } = await inProcess(['bots', 'chat', 'talk'], { env, input });
    expect(stdout).toMatch(/> One\n0: One[^]*> fail\n[^]*> Three\n\d: Three/);
    expect(stderr).toContain('error failure');
    expect(code).toBe(1);
  });

  it('prompts until an empty question is entered', async () => {
    const person = createTerminal([
      ['talk [1]:', 'One\r'],
      ['talk [2]:', 'fail\r'],
      ['talk [3]:', '\r'],
    ]);
    const { code, stdout } = await inProcess(['bots', 'chat', 'talk'], { env, person });
    expect(stdout).toContain('0: One');
    expect(person.shown()).toContain('error: unexpected error; see the server log for turn');
    expect(person.shown()).not.toContain('canary');
    expect(code).toBe(0);
  });

  it('reports errors', async () => {
    const failed = await inProcess(['bots', 'chat', 'talk', 'fail', '--json'], { env });
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('"failure"') });
    const unknown = await inProcess(['bots', 'chat', 'talk', 'x', '--agent', 'critic'], { env });
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the bot has no agent "critic"'),
    });
  });
});
