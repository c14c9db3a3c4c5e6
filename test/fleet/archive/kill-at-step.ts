/**
 * Archives or restores the events of a bot in a process of its own, which kills itself before the given
 * step: a call that changes or syncs a file of the archive, or the start or end of a write to the database.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { openStorage, type StorageLocation } from '../../../src/storage/storage.ts';

export interface KillAtStep {
  readonly location: StorageLocation;
  readonly directory: string;
  readonly bot: string;
  /** Archives events from before this time, or restores all events. */
  readonly work: { readonly before: number } | 'restore';
  /** From 1. A step that is never reached lets the process end. */
  readonly at: number;
}

const asked = JSON.parse(process.argv[2]!) as KillAtStep;
let steps = 0;

function step(): void {
  steps += 1;
  if (steps === asked.at) process.kill(process.pid, 'SIGKILL');
}

const { open, rename } = fs;
Object.assign(fs, {
  async open(...args: Parameters<typeof open>) {
    if (String(args[0]).startsWith(asked.directory)) step();
    return open(...args);
  },
  async rename(...args: Parameters<typeof rename>) {
    step();
    await rename(...args);
    step();
  },
});
syncBuiltinESMExports();

// Loaded after the functions were replaced.
const { archiveEvents, restoreEvents } = await import('../../../src/server/event-archives.ts');
const storage = await openStorage(asked.location);
const write: typeof storage.write = async (work, options) => {
  step();
  const result = await storage.write(async (tx) => {
    const done = await work(tx);
    step();
    return done;
  }, options);
  step();
  return result;
};
const archive = { storage: { ...storage, write }, directory: asked.directory, clock: Date.now };
if (asked.work === 'restore') await restoreEvents(archive, asked.bot, undefined, () => {});
else await archiveEvents(archive, asked.bot, asked.work.before, () => {});
await storage.close();
