import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { BASIC_ENV, BIN } from '../cli/service-local.ts';

export interface RunningDaemon {
  readonly pid: number;
  readonly logged: (part: string, times?: number) => Promise<string>;
  readonly ended: Promise<readonly [code: number | null, signal: string | null]>;
  readonly kill: () => Promise<unknown>;
}

/** `service-local daemon run` as a process, once it has begun its work. */
export async function startDaemon(
  directory: string,
  env: Readonly<Record<string, string>>,
): Promise<RunningDaemon> {
  const child = spawn(process.execPath, [BIN, 'daemon', 'run'], {
    cwd: directory,
    env: { ...BASIC_ENV, HOME: directory, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  const kill = async (): Promise<unknown> => child.kill('SIGKILL') && ended;
  const lines: string[] = [];
  const { promise: isOver, reject } = Promise.withResolvers<never>();
  isOver.catch(() => {});
  const input = createInterface(child.stderr!).on('line', (line) => lines.push(line));
  void ended.then(() => reject(new Error(`the daemon ended: ${lines.join('\n')}`)));
  await Promise.race([once(child, 'message'), isOver]);
  return {
    pid: child.pid!,
    ended,
    kill,
    async logged(part, times = 1) {
      for (;;) {
        const found = lines.filter((line) => line.includes(part));
        if (found.length >= times) return found[times - 1]!;
        await Promise.race([once(input, 'line'), isOver]);
      }
    },
  };
}
