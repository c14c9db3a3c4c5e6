import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Rest, RestAnswer, RestRequest } from './rest.ts';
import type { Metadata } from './wire.ts';

interface Item {
  readonly metadata: Metadata;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Item & { readonly code?: number };
}

export interface Reflected {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Receives all current items after each change. */
  readonly onItems: (items: readonly unknown[]) => void;
  /** Called from the second consecutive failure on, with the time of the first, ms since the epoch. */
  readonly onFailure: (error: ServiceError, since: number) => void;
}

/**
 * Follows the objects at a path: lists them, then watches for changes. Resumes interrupted watches,
 * and lists again when that is not possible or `resyncMs` has passed. Resolves when `signal` aborts.
 */
export async function reflect(
  rest: Rest,
  { path, query, onItems, onFailure }: Reflected,
  signal: AbortSignal,
): Promise<void> {
  const items = new Map<string, Item>();
  let failures = 0;
  let failingSince = 0;
  /** Number of consecutive watches that ended early. */
  let cuts = 0;

  /** @throws ServiceError */
  const list = async (): Promise<string> => {
    const answer = await rest.ask({ method: 'GET', path, query }, 1);
    if (answer.status !== 200) throw errorOf(rest, answer);
    const { metadata, items: listed = [] } = answer.body as {
      metadata?: { resourceVersion?: string };
      items?: readonly Item[];
    };
    failures = 0;
    items.clear();
    for (const item of listed) items.set(item.metadata.name, item);
    onItems([...items.values()]);
    return metadata?.resourceVersion ?? '';
  };

  /** Watches once. @returns the version to resume from, or undefined if a new list is necessary. */
  const follow = async (from: string, until: number): Promise<string | undefined> => {
    let version = from;
    const leftMs = Math.max(1, Math.ceil(until - performance.now()));
    const begun = performance.now();
    const request: RestRequest = {
      method: 'GET',
      path,
      query: {
        ...query,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: version,
        timeoutSeconds: String(Math.ceil(leftMs / 1000)),
      },
    };
    // A dead connection does not report that it is dead, so the watch has a time limit.
    const over = AbortSignal.any([signal, AbortSignal.timeout(leftMs)]);
    const opened = await rest.stream(request, over).catch(() => undefined);
    // The next list shows whether the version was too old, access denied or the server unreachable.
    if (opened === undefined || !('lines' in opened)) return undefined;
    try {
      for await (const line of opened.lines) {
        const { type, object } = JSON.parse(line) as WatchEvent;
        if (type === 'ERROR') return undefined;
        cuts = 0;
        version = object.metadata.resourceVersion ?? version;
        if (type === 'BOOKMARK') continue;
        if (type === 'DELETED') items.delete(object.metadata.name);
        else items.set(object.metadata.name, object);
        onItems([...items.values()]);
      }
    } catch {
      // The watch was interrupted, timed out or sent invalid JSON; changes read so far are valid.
    }
    if (performance.now() - begun > rest.pace.backoff.longestMs) cuts = 0;
    return version;
  };

  while (!signal.aborted) {
    try {
      let version: string | undefined = await list();
      const until = performance.now() + rest.pace.resyncMs;
      while (version !== undefined && performance.now() < until && !signal.aborted) {
        version = await follow(version, until);
        if (performance.now() < until) await pause(++cuts);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ServiceError)) throw error;
      failures++;
      if (failures === 1) failingSince = Date.now();
      else onFailure(error, failingSince);
      await pause(failures, (error.retryAfterSeconds ?? 0) * 1000);
    }
  }

  async function pause(count: number, leastMs = 0): Promise<void> {
    const ms = Math.max(leastMs, backoffMs(count, rest.pace.backoff, Math.random()));
    await delay(ms, undefined, { signal }).catch(() => undefined);
  }
}

function errorOf(rest: Rest, answer: RestAnswer): ServiceError {
  const { message } = rest.refusal(answer);
  return new ServiceError(
    'cluster_unavailable',
    `the cluster responded with ${answer.status}: ${message}`,
  );
}
