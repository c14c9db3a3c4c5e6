import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Load } from './load.ts';

export interface BenchServer {
  readonly url: string;
  readonly pid: number;
  readonly stop: () => Promise<unknown>;
}

/** Starts a script of this folder that prints its URL once it listens. */
export async function startScript(name: string): Promise<BenchServer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, name)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    url: line.toString().trim(),
    pid: child.pid!,
    stop() {
      child.kill();
      return closed;
    },
  };
}

/** Puts load on a server from another process. @returns milliseconds per request */
export async function timePerRequest(load: Load): Promise<number> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(load));
  const printed = await text(child.stdout);
  if (printed === '') throw new Error('the load failed');
  return Number(printed);
}
