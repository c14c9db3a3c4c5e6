import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openStorage } from '../../src/storage/storage.ts';
import { SCRATCH } from '../scratch.ts';

let template: string | undefined;

/** A file with all tables and no rows, because creating them takes longer than most of a day. */
export async function databaseTemplate(): Promise<string> {
  if (template !== undefined) return template;
  const directory = mkdtempSync(join(SCRATCH, 'service-local-day-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'template.sqlite');
  await (await openStorage({ file })).close();
  return (template = file);
}
