/** The storage of the API server: objects by kind, namespace and name, with their history. */
import { randomUUID } from 'node:crypto';
import { stable, type Json, type Owner } from './fields.ts';
import type { Validator } from './schemas.ts';

export interface Stored extends Json {
  apiVersion: string;
  kind: string;
  metadata: Json & {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string }[];
  };
  spec?: Json;
  status?: Json;
}

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Stored;
  readonly version: number;
}

export interface Store {
  /** Version of the last change of any object. */
  readonly version: () => number;
  readonly find: (kind: string, namespace: string, name: string) => Stored | undefined;
  /** Lists objects of all namespaces by default. */
  readonly all: (kind: string, namespace?: string) => readonly Stored[];
  readonly ownersOf: (object: Stored) => readonly Owner[];
  /** Returns the object as `put` would store it. @throws Error if the object violates its schema. */
  readonly prepared: (object: Stored) => Stored;
  /** Stores the object, unless it is unchanged. */
  readonly put: (object: Stored, owners?: readonly Owner[]) => Stored;
  readonly remove: (object: Stored) => void;
  /** Changes since a version, oldest first; undefined if the version is too old. */
  readonly since: (kind: string, version: number) => readonly Change[] | undefined;
  /** Discards the history of changes. */
  readonly compact: () => void;
  /** Called after each change. */
  readonly listeners: Set<(change: Change) => void>;
}

export class SchemaError extends Error {}

export function createStore(validators: Readonly<Record<string, Validator>>): Store {
  const objects = new Map<string, Stored>();
  const owners = new Map<string, readonly Owner[]>();
  const listeners = new Set<(change: Change) => void>();
  let changes: Change[] = [];
  let compacted = 0;
  let version = 1000;

  const keyOf = (kind: string, namespace: string | undefined, name: string): string =>
    `${kind}/${namespace ?? ''}/${name}`;
  const keyOfObject = ({ kind, metadata }: Stored): string =>
    keyOf(kind, metadata.namespace, metadata.name);
  const record = (type: Change['type'], object: Stored): void => {
    const change = { type, object, version };
    changes.push(change);
    for (const listener of listeners) listener(change);
  };
  const withoutVersion = ({ metadata, ...rest }: Stored): string =>
    stable({ ...rest, metadata: { ...metadata, resourceVersion: '', generation: 0 } });

  const prepared = (object: Stored): Stored => {
    const before = objects.get(keyOfObject(object));
    const hasNewSpec = stable(before?.spec) !== stable(object.spec);
    const generation = (before?.metadata.generation ?? 0) + (hasNewSpec ? 1 : 0);
    const next: Stored = structuredClone({
      ...object,
      metadata: {
        ...object.metadata,
        uid: before?.metadata.uid ?? randomUUID(),
        // Kubernetes stores times in whole seconds.
        creationTimestamp:
          before?.metadata.creationTimestamp ?? `${new Date().toISOString().slice(0, 19)}Z`,
        ...(object.spec === undefined ? {} : { generation }),
        resourceVersion: before?.metadata.resourceVersion ?? '0',
      },
    });
    const faults = validators[object.kind]!(next);
    if (faults.length > 0) throw new SchemaError(faults.join('; '));
    return next;
  };

  return {
    version: () => version,
    find: (kind, namespace, name) => objects.get(keyOf(kind, namespace, name)),
    all: (kind, namespace) =>
      [...objects.values()].filter(
        (object) =>
          object.kind === kind &&
          (namespace === undefined || object.metadata.namespace === namespace),
      ),
    ownersOf: (object) => owners.get(keyOfObject(object)) ?? [],
    prepared,
    put(object, itsOwners) {
      const key = keyOfObject(object);
      const before = objects.get(key);
      const next = prepared(object);
      if (itsOwners !== undefined) owners.set(key, itsOwners);
      if (before !== undefined && withoutVersion(before) === withoutVersion(next)) return before;
      next.metadata.resourceVersion = String(++version);
      objects.set(key, next);
      record(before === undefined ? 'ADDED' : 'MODIFIED', next);
      return next;
    },
    remove(object) {
      const key = keyOfObject(object);
      const before = objects.get(key);
      if (before === undefined) return;
      objects.delete(key);
      owners.delete(key);
      version++;
      record('DELETED', {
        ...before,
        metadata: { ...before.metadata, resourceVersion: String(version) },
      });
    },
    since: (kind, from) =>
      from < compacted
        ? undefined
        : changes.filter((change) => change.version > from && change.object.kind === kind),
    compact() {
      changes = [];
      compacted = ++version;
    },
    listeners,
  };
}
