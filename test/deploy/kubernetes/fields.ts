/**
 * Server-side apply as in Kubernetes: ownership of fields, conflicts, and removal of fields without
 * an owner (https://kubernetes.io/docs/reference/using-api/server-side-apply/).
 */
export type Json = Record<string, unknown>;

/** Fields of one manager, as JSON arrays of path steps: `f:name`, `k:{"key":…}` and a final `.`. */
export interface Owner {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly fields: ReadonlySet<string>;
  /** Time of the last change of the applied fields. */
  readonly time?: string | undefined;
}

export interface FieldConflict {
  readonly manager: string;
  readonly operation: Owner['operation'];
  /** For example `.spec.replicas`. */
  readonly field: string;
}

/** Lists that are merged by keys; all other lists are replaced as a whole. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  ports: ['containerPort', 'protocol'],
  conditions: ['type'],
};
/** Objects that are replaced as a whole. */
const ATOMIC = new Set(['selector', 'podSelector', 'nodeSelector', 'secretKeyRef']);
const NOT_OWNED = new Set([
  'apiVersion',
  'kind',
  'status',
  'name',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
]);

/** The paths of all fields of an object. */
function fieldsOf(object: Json): Set<string> {
  const { metadata, ...rest } = object;
  const own = (all: Json): Json =>
    Object.fromEntries(Object.entries(all).filter(([key]) => !NOT_OWNED.has(key)));
  const found = new Set<string>();
  collect({ ...own(rest), metadata: own(metadata as Json) }, [], found);
  return found;
}

function collect(value: unknown, path: readonly string[], found: Set<string>): void {
  const key = path.at(-1)?.slice(2) ?? '';
  const keys = path.at(-1)?.startsWith('f:') ? KEYS[key] : undefined;
  if (Array.isArray(value) && keys !== undefined && value.length > 0) {
    for (const item of value as Json[]) {
      const step = `k:${JSON.stringify(Object.fromEntries(keys.map((each) => [each, item[each]])))}`;
      found.add(JSON.stringify([...path, step, '.']));
      collect(item, [...path, step], found);
    }
  } else if (isMap(value) && !ATOMIC.has(key) && Object.keys(value).length > 0) {
    for (const [name, child] of Object.entries(value)) {
      collect(child, [...path, `f:${name}`], found);
    }
  } else if (path.length > 1 || !isMap(value)) {
    found.add(JSON.stringify(path));
  }
}

/**
 * Returns the live object after a manager applies its fields.
 * @param live empty if the object is new.
 */
export function applyFields(
  live: Json,
  owners: readonly Owner[],
  manager: string,
  applied: Json,
  isForced: boolean,
): { object: Json; owners: Owner[]; conflicts: FieldConflict[] } {
  const fields = fieldsOf(applied);
  const isOwn = (owner: Owner): boolean => owner.manager === manager && owner.operation === 'Apply';
  const others = owners.filter((owner) => !isOwn(owner));
  const conflicts = others.flatMap((owner) =>
    [...fields]
      .filter((path) => owner.fields.has(path) && !isSame(live, applied, path))
      .map((path) => ({
        manager: owner.manager,
        operation: owner.operation,
        field: shownField(path),
      })),
  );
  if (conflicts.length > 0 && !isForced) return { object: live, owners: [...owners], conflicts };

  const object = structuredClone(live);
  const kept = others.map((owner) => ({
    ...owner,
    fields: new Set(
      [...owner.fields].filter((path) => !fields.has(path) || isSame(live, applied, path)),
    ),
  }));
  for (const path of owners.find(isOwn)?.fields ?? []) {
    if (!fields.has(path) && !kept.some((owner) => owner.fields.has(path))) {
      remove(object, JSON.parse(path) as string[]);
    }
  }
  for (const path of fields) {
    const steps = JSON.parse(path) as string[];
    set(object, steps, structuredClone(valueAt(applied, steps)));
  }
  const own = owners.find(isOwn);
  const isAsBefore =
    own?.fields.size === fields.size &&
    [...fields].every((path) => own.fields.has(path) && isSame(live, applied, path));
  const time = isAsBefore ? own.time : `${new Date().toISOString().slice(0, 19)}Z`;
  const all = [...kept, { manager, operation: 'Apply' as const, fields, time }];
  return { object, owners: all.filter((owner) => owner.fields.size > 0), conflicts: [] };
}

/** Returns the owners of all fields after a manager updates the object without apply. */
export function updateOwners(
  before: Json,
  after: Json,
  owners: readonly Owner[],
  manager: string,
): Owner[] {
  const [old, next] = [fieldsOf(before), fieldsOf(after)];
  const changed = [...next].filter((path) => !old.has(path) || !isSame(before, after, path));
  const gone = [...old].filter((path) => !next.has(path));
  const isOwn = (owner: Owner): boolean =>
    owner.manager === manager && owner.operation === 'Update';
  const lost = new Set([...changed, ...gone]);
  const kept = owners.map((owner) => ({
    ...owner,
    fields: new Set([...owner.fields].filter((path) => isOwn(owner) || !lost.has(path))),
  }));
  const own = new Set([...(kept.find(isOwn)?.fields ?? []), ...changed]);
  const all = [
    ...kept.filter((owner) => !isOwn(owner)),
    { manager, operation: 'Update' as const, fields: own },
  ];
  return all.filter((owner) => owner.fields.size > 0);
}

/** Converts paths to the format of `managedFields`. */
export function managedFields(owners: readonly Owner[], apiVersion: string): Json[] {
  return owners.map(({ manager, operation, fields, time }) => {
    const fieldsV1: Json = {};
    for (const path of fields) {
      let at = fieldsV1;
      for (const step of JSON.parse(path) as string[]) {
        at[step] ??= {};
        at = at[step] as Json;
      }
    }
    return { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1 };
  });
}

function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSame(one: Json, other: Json, path: string): boolean {
  const steps = JSON.parse(path) as string[];
  if (steps.at(-1) === '.') return true;
  return stable(valueAt(one, steps)) === stable(valueAt(other, steps));
}

/** JSON with sorted keys. */
export function stable(value: unknown): string {
  return (
    JSON.stringify(value, (_key, each: unknown) =>
      isMap(each)
        ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        : each,
    ) ?? ''
  );
}

function itemOf(list: unknown, step: string): Json | undefined {
  const keys = Object.entries(JSON.parse(step.slice(2)) as Json);
  return ((list ?? []) as Json[]).find((item) => keys.every(([key, value]) => item[key] === value));
}

function valueAt(object: Json, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((value, step) => {
    if (value === undefined || step === '.') return value;
    return step.startsWith('k:') ? itemOf(value, step) : (value as Json)[step.slice(2)];
  }, object);
}

function set(object: Json, steps: readonly string[], value: unknown): void {
  let at: unknown = object;
  for (const [index, step] of steps.entries()) {
    if (step === '.') return;
    const next = steps[index + 1];
    if (step.startsWith('k:')) {
      let item = itemOf(at, step);
      if (item === undefined) {
        item = JSON.parse(step.slice(2)) as Json;
        (at as Json[]).push(item);
      }
      at = item;
    } else if (next === undefined) {
      (at as Json)[step.slice(2)] = value;
    } else {
      (at as Json)[step.slice(2)] ??= next.startsWith('k:') ? [] : {};
      at = (at as Json)[step.slice(2)];
    }
  }
}

function remove(object: Json, steps: readonly string[]): void {
  const isItem = steps.at(-1) === '.';
  const path = isItem ? steps.slice(0, -1) : steps;
  const parent = valueAt(object, path.slice(0, -1));
  const last = path.at(-1)!;
  if (parent === undefined) return;
  if (isItem) {
    const list = parent as Json[];
    const item = itemOf(list, last);
    if (item !== undefined) list.splice(list.indexOf(item), 1);
  } else {
    delete (parent as Json)[last.slice(2)];
  }
}

function shownField(path: string): string {
  return (JSON.parse(path) as string[])
    .map((step) => {
      if (step === '.') return '';
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      const keys = Object.entries(JSON.parse(step.slice(2)) as Json);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');
}
