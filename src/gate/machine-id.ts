import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isSystemError } from '../base/system-errors.ts';
import { machineHash } from '../lease/use.ts';

/** Access to the operating system for reading the machine id. */
export interface MachineIdSource {
  readonly platform: NodeJS.Platform;
  /** Rejects with a system error. */
  readonly readText: (path: string) => Promise<string>;
  /** Resolves to the standard output of a program. */
  readonly run: (program: string, args: readonly string[]) => Promise<string>;
}

const execute = promisify(execFile);

const SYSTEM: MachineIdSource = {
  platform: process.platform,
  readText: (path) => readFile(path, 'utf8'),
  run: async (program, args) => {
    const { stdout } = await execute(program, [...args], { timeout: 10_000, windowsHide: true });
    return stdout;
  },
};

let known: Promise<string | undefined> | undefined;

/**
 * Returns `machineHash` of this machine; undefined if its id cannot be read, as in most containers. The id
 * itself never leaves this process.
 */
export async function ownMachineHash(): Promise<string | undefined> {
  known ??= readMachineHash(SYSTEM);
  const hash = await known;
  // An id that cannot be read now may be readable later.
  if (hash === undefined) known = undefined;
  return hash;
}

export async function readMachineHash(source: MachineIdSource): Promise<string | undefined> {
  const id = await readMachineId(source);
  return id === undefined ? undefined : machineHash(id);
}

async function readMachineId(source: MachineIdSource): Promise<string | undefined> {
  const { platform } = source;
  if (platform === 'linux') return readLinuxId(source);
  if (platform === 'darwin') {
    const registry = await runQuietly(source, '/usr/sbin/ioreg', IOREG_ARGUMENTS);
    return usable(/"IOPlatformUUID" = "([^"]+)"/.exec(registry)?.[1]);
  }
  if (platform === 'win32') {
    const program = `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\reg.exe`;
    const values = await runQuietly(source, program, REG_ARGUMENTS);
    return usable(/MachineGuid\s+REG_SZ\s+(\S+)/.exec(values)?.[1]);
  }
  return undefined;
}

const IOREG_ARGUMENTS = ['-rd1', '-c', 'IOPlatformExpertDevice'];
const REG_ARGUMENTS = [
  'query',
  'HKLM\\SOFTWARE\\Microsoft\\Cryptography',
  '/v',
  'MachineGuid',
  '/reg:64',
];

/** See machine-id(5); the second is a copy on systems without systemd. */
const LINUX_FILES = ['/etc/machine-id', '/var/lib/dbus/machine-id'];

async function readLinuxId({ readText }: MachineIdSource): Promise<string | undefined> {
  for (const path of LINUX_FILES) {
    try {
      const id = usable(await readText(path));
      if (id !== undefined) return id;
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }
  return undefined;
}

/** Returns the id unless it is a placeholder that several machines share, such as `uninitialized`. */
function usable(text: string | undefined): string | undefined {
  const id = text?.trim();
  const isId = id !== undefined && /^[0-9a-f-]{32,36}$/i.test(id) && /[1-9a-f]/i.test(id);
  return isId ? id : undefined;
}

async function runQuietly(
  { run }: MachineIdSource,
  program: string,
  args: readonly string[],
): Promise<string> {
  try {
    return await run(program, args);
  } catch {
    // The program is missing or failed, so there is no id.
    return '';
  }
}
