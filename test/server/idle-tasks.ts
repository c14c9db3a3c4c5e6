import { ServiceError } from '../../src/base/errors.ts';
import type { Answerer } from '../../src/research/answering.ts';
import { openChat } from '../../src/research/chat.ts';
import type { Channels } from '../../src/fleet/notifications/channels.ts';
import { Notifier, type NotifierService } from '../../src/fleet/notifications/notifier.ts';
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

/** Sends notifications to these channels; evaluates its rules when a test calls `poll`. */
export function notifierOf(
  { storage, clock }: Services['identity'],
  channels: Channels = new Map(),
  log: NotifierService['log'] = { info() {}, warn() {} },
): Notifier {
  const origin = 'https://licenses.example';
  const service = { storage, clock, channels, origin, log, ownLease: () => null };
  return new Notifier({ ...service, timeoutMs: 5000 });
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
