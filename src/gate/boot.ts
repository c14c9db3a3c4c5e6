import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { isSystemError } from '../base/errors.ts';
import type { Boot } from '../lease/known-time.ts';

let bootId: string | undefined;

/** Of the machine that this runs on. Where the system does not name its boots, each process is one. */
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
