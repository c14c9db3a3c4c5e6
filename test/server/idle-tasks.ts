import { ServiceError } from '../../src/errors.ts';
import type { Services } from '../../src/server/services.ts';

/** Tasks on which nobody works. */
export function idleTasks(
  { storage, clock }: Services['identity'],
  catalogueDir = '/nowhere',
): Services['tasks'] {
  return { storage, clock, catalogueDir, wake() {}, release() {} };
}

/** A server that knows no cluster. */
export function noProduction({ storage, clock }: Services['identity']): Services['production'] {
  return {
    storage,
    clock,
    clusters: {},
    exchanges: {},
    cluster() {
      throw new ServiceError('conflict', 'there is no cluster', { reason: 'no_cluster' });
    },
    log: { warn() {}, error() {} },
  };
}
