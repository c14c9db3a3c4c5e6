import { ServiceError } from '../../src/base/errors.ts';
import type { Answerer } from '../../src/research/answering.ts';
import { openChat } from '../../src/research/chat.ts';
import { EMBEDDED } from '../../src/research/embedded.ts';
import type { Services } from '../../src/server/services.ts';

/** Tasks that no worker runs. */
export function idleTasks(
  { storage, clock }: Services['identity'],
  catalogueDir = '/nowhere',
): Services['tasks'] {
  return { storage, clock, catalogueDir, wake() {}, release() {} };
}

/** A server without clusters. */
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

/** A server without other instances. */
export const NO_FEDERATION: Services['federation'] = { isEmpty: true, search: async () => [] };

/** Research bots whose answers come from `answerer`. */
export function chatOf(
  { storage, clock }: Services['identity'],
  answerer: Answerer = EMBEDDED,
  log: Parameters<typeof openChat>[0]['log'] = { error() {} },
): Services['chat'] {
  const budget = { turns: 8, seconds: 20, tokens: 100_000 };
  return openChat({ storage, clock, answerer, budget, log });
}
