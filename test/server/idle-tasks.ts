import type { Services } from '../../src/server/services.ts';

/** Tasks on which nobody works. */
export function idleTasks(
  { storage, clock }: Services['identity'],
  catalogueDir = '/nowhere',
): Services['tasks'] {
  return { storage, clock, catalogueDir, wake() {}, release() {} };
}
