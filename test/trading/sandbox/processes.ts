import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Lists the processes of `ps`: id, parent, and state, which begins with Z after the end. */
async function processes(): Promise<
  readonly (readonly [pid: number, of: number, state: string])[]
> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=,stat=,comm=']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , name]) => name !== 'ps')
    .map(([pid, of, state]) => [Number(pid), Number(of), state!] as const);
}

export async function childrenOf(parent: number): Promise<readonly number[]> {
  return (await processes()).filter(([, of]) => of === parent).map(([pid]) => pid);
}

export async function isRunning(process: number): Promise<boolean> {
  return (await processes()).some(([pid, , state]) => pid === process && !state.startsWith('Z'));
}
