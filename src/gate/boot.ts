import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { isSystemError } from '../base/system-errors.ts';
import type { Boot } from '../lease/known-time.ts';

let bootId: string | undefined;

/** Returns the boot of this machine; where the system has no boot id, each process gets its own. */
export function systemBoot(): Boot {
  bootId ??= readBootId() ?? randomUUID();
  return { boot_id: bootId, uptime_seconds: uptime() };
}

function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() || undefined;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
