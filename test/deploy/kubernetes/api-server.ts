/**
 * A local Kubernetes API server with the features that deployments use: namespaced objects of the
 * kinds in `KINDS`, validated by the published schemas, server-side apply, lists and watches. It can
 * simulate faults, and `kubelet` simulates the cluster.
 */
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import {
  applyFields,
  managedFields,
  stable,
  updateOwners,
  type Json,
  type Owner,
} from './fields.ts';
import { startKubelet, type Kubelet } from './kubelet.ts';
import { validatorOf } from './schemas.ts';
import { createStore, SchemaError, type Change, type Store, type Stored } from './store.ts';

export interface Asked {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** `cut` closes the connection without a response; `silent` keeps it open and sends nothing. */
type FaultAnswer =
  | 'cut'
  | 'silent'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message?: string;
    };

export interface TestApiServer {
  readonly url: string;
  /** Bearer token that clients must send. */
  readonly token: string;
  /** Name of the current context in the kubeconfig. */
  readonly kubeconfig: object;
  /** Writes the kubeconfig and resolves with its path. */
  readonly writeKubeconfig: (directory: string) => Promise<string>;
  readonly store: Store;
  readonly kubelet: Kubelet;
  readonly asked: readonly Asked[];
  /** Applies the fault to the next `times` requests that match; by default to all requests. */
  readonly fail: (
    answer: FaultAnswer,
    options?: { times?: number; matches?: (asked: Asked) => boolean },
  ) => void;
  /** Removes all faults. */
  readonly recover: () => void;
  /** Resolves once `count` watches are open. */
  readonly watched: (count: number) => Promise<void>;
  /** Sends a bookmark with the current version to all watches. */
  readonly bookmark: () => void;
  /** Closes the connections of all watches. */
  readonly cut: () => void;
  /** Stops sending events to the open watches. */
  readonly mute: () => void;
  /** Discards the history of changes and ends all watches with status 410. */
  readonly expire: () => void;
  readonly addNamespace: (name: string) => void;
  readonly close: () => Promise<void>;
}

interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
}

const KINDS: readonly Kind[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' },
  { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' },
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' },
  { apiVersion: 'v1', kind: 'Pod', plural: 'pods' },
  { apiVersion: 'v1', kind: 'Event', plural: 'events' },
  { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces' },
  { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs' },
  { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', plural: 'networkpolicies' },
  { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' },
];

const NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?$/;

/** A response with a Kubernetes `Status` as its body. */
class Refused extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly Json[];

  constructor(status: number, reason: string, message: string, causes: readonly Json[] = []) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
  }
}

interface Target {
  readonly type: Kind;
  readonly namespace: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

export async function startApiServer(token = 'token-of-the-test'): Promise<TestApiServer> {
  const validators = await Promise.all(
    KINDS.map(async ({ apiVersion, kind }) => [kind, await validatorOf(apiVersion, kind)] as const),
  );
  const store = createStore(Object.fromEntries(validators));
  const kubelet = startKubelet(store);
  const asked: Asked[] = [];
  let faults: { answer: FaultAnswer; times: number; matches: (asked: Asked) => boolean }[] = [];
  const watches = new Set<Watching>();
  let waiting: (() => void)[] = [];

  const addNamespace = (name: string): void => {
    store.put({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
      status: { phase: 'Active' },
    });
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url!, 'http://localhost');
    const one = { method: request.method!, path: url.pathname, query: url.searchParams };
    asked.push(one);
    const body = await text(request);
    const fault = faults.find(({ times, matches }) => times > 0 && matches(one));
    if (fault !== undefined) {
      fault.times--;
      fail(fault.answer, request, response);
      return;
    }
    try {
      if (request.headers.authorization !== `Bearer ${token}`) {
        throw new Refused(401, 'Unauthorized', 'Unauthorized');
      }
      const discovered = discovery(one.path);
      if (discovered !== undefined) {
        send(response, 200, discovered);
        return;
      }
      const target = targetOf(one.path);
      if (one.query.get('watch') === 'true') {
        watch(target, one.query, response);
        return;
      }
      const type = (request.headers['content-type'] ?? '').split(';')[0]!;
      const [status, value] = perform(target, one, type, body);
      send(response, status, value);
    } catch (error) {
      if (error instanceof SchemaError) {
        send(response, 400, statusOf(new Refused(400, 'BadRequest', error.message)));
      } else if (error instanceof Refused) {
        send(response, error.status, statusOf(error));
      } else {
        send(response, 500, statusOf(new Refused(500, 'InternalError', String(error))));
      }
    }
  };

  const perform = (
    target: Target,
    { method, query }: Asked,
    contentType: string,
    body: string,
  ): readonly [number, object] => {
    const { type, namespace, name } = target;
    if (method === 'GET' && name === undefined) return [200, listOf(target, query)];
    if (method === 'GET' && target.subresource === 'scale') return [200, scaleOf(found(target))];
    if (method === 'GET') return [200, shown(found(target))];
    if (method === 'DELETE') return [200, remove(target)];
    const isDry = query.get('dryRun') === 'All';
    const manager = query.get('fieldManager') ?? 'unknown';
    const value = parse(body) as Stored;
    if (method === 'PATCH' && contentType === 'application/apply-patch+yaml') {
      if (!query.has('fieldManager')) {
        throw new Refused(400, 'BadRequest', 'fieldManager is required for apply patch');
      }
      return apply(target, value, manager, query.get('force') === 'true', isDry);
    }
    if (method === 'POST') {
      if (store.find(type.kind, namespace, value.metadata.name) !== undefined) {
        const text409 = `${type.plural} "${value.metadata.name}" already exists`;
        throw new Refused(409, 'AlreadyExists', text409);
      }
      return [201, keep(target, value, updateOwners({ metadata: {} }, value, [], manager), isDry)];
    }
    const before = found(target);
    const after = changed(target, before, contentType, value);
    const version = after.metadata.resourceVersion;
    if (version !== undefined && version !== before.metadata.resourceVersion) {
      throw new Refused(409, 'Conflict', 'the object has been modified; please apply your changes');
    }
    const owners = updateOwners(before, after, store.ownersOf(before), manager);
    const kept = keep(target, after, owners, isDry);
    return [200, target.subresource === 'scale' ? scaleOf(kept) : kept];
  };

  const changed = (target: Target, before: Stored, contentType: string, value: Json): Stored => {
    if (target.subresource === 'scale') {
      const { replicas } = (value['spec'] ?? {}) as { replicas?: number };
      return { ...before, spec: { ...before.spec, replicas } };
    }
    if (contentType === 'application/json') return value as Stored;
    const { metadata, ...rest } = before;
    const { resourceVersion: _version, ...kept } = metadata;
    return merged({ ...rest, metadata: kept }, value) as Stored;
  };

  const apply = (
    target: Target,
    value: Stored,
    manager: string,
    isForced: boolean,
    isDry: boolean,
  ): readonly [number, object] => {
    if (value.metadata.name !== target.name) {
      throw new Refused(400, 'BadRequest', 'the name of the object does not match the URL');
    }
    const { kind, namespace } = { kind: target.type.kind, namespace: target.namespace };
    const live = store.find(kind, namespace, target.name);
    const fresh = {
      apiVersion: value.apiVersion,
      kind,
      metadata: { name: target.name, namespace },
    };
    const before = live ?? fresh;
    const result = applyFields(
      before,
      live === undefined ? [] : store.ownersOf(live),
      manager,
      value,
      isForced,
    );
    if (result.conflicts.length > 0) {
      const causes = result.conflicts.map((conflict) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with "${conflict.manager}"${conflict.operation === 'Update' ? ` using ${value.apiVersion}` : ''}`,
        field: conflict.field,
      }));
      const count = `Apply failed with ${causes.length} conflict${causes.length === 1 ? '' : 's'}`;
      const texts = causes.map(({ message, field }) => `${message}: ${field}`);
      throw new Refused(409, 'Conflict', `${count}: ${texts.join(', ')}`, causes);
    }
    const kept = keep(target, result.object as Stored, result.owners, isDry);
    return [live === undefined ? 201 : 200, kept];
  };

  const keep = (
    target: Target,
    value: Stored,
    owners: readonly Owner[],
    isDry: boolean,
  ): Stored => {
    const { kind, apiVersion, plural } = target.type;
    const { namespace } = target;
    if (kind !== 'Namespace') admit(namespace);
    const object: Stored = withDefaults({
      ...value,
      apiVersion,
      kind,
      metadata: { ...value.metadata, ...(kind === 'Namespace' ? {} : { namespace }) },
    });
    const before = store.find(kind, namespace, object.metadata.name);
    const problems = [...nameFaults(object), ...immutabilityFaults(before, object)];
    if (problems.length > 0) {
      const message = `${plural} "${object.metadata.name}" is invalid: ${problems.join('; ')}`;
      throw new Refused(422, 'Invalid', message);
    }
    return shown(isDry ? store.prepared(object) : store.put(object, owners), owners);
  };

  /** Rejects objects whose namespace is missing or being deleted. */
  const admit = (namespace: string): void => {
    const found404 = store.find('Namespace', '', namespace);
    if (found404 === undefined) {
      throw new Refused(404, 'NotFound', `namespaces "${namespace}" not found`);
    }
    if (found404.metadata.deletionTimestamp !== undefined) {
      throw new Refused(403, 'Forbidden', `namespace ${namespace} is being terminated`, [
        { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated` },
      ]);
    }
  };

  const found = ({ type, namespace, name }: Target): Stored => {
    const object = store.find(type.kind, namespace, name!);
    if (object !== undefined) return object;
    throw new Refused(404, 'NotFound', `${type.plural} "${name!}" not found`);
  };

  const remove = (target: Target): object => {
    const object = found(target);
    const deletionTimestamp = new Date().toISOString();
    if (object.kind === 'Pod') {
      store.put({ ...object, metadata: { ...object.metadata, deletionTimestamp } });
    } else if (object.kind === 'Namespace') {
      store.put({ ...object, metadata: { ...object.metadata, deletionTimestamp } });
      for (const { kind } of KINDS) {
        for (const each of store.all(kind, object.metadata.name)) store.remove(each);
      }
      store.remove(object);
    } else {
      store.remove(object);
    }
    return { apiVersion: 'v1', kind: 'Status', status: 'Success' };
  };

  const listOf = ({ type, namespace }: Target, query: URLSearchParams): object => ({
    apiVersion: type.apiVersion,
    kind: `${type.kind}List`,
    metadata: { resourceVersion: String(store.version()) },
    items: store
      .all(type.kind, type.kind === 'Namespace' ? undefined : namespace)
      .filter((object) => isSelected(object, query))
      .map((object) => shown(object)),
  });

  const shown = (object: Stored, owners = store.ownersOf(object)): Stored => ({
    ...object,
    metadata: { ...object.metadata, managedFields: managedFields(owners, object.apiVersion) },
  });

  const watch = (target: Target, query: URLSearchParams, response: ServerResponse): void => {
    const since = store.since(target.type.kind, Number(query.get('resourceVersion') ?? 0));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const tell = (event: object): void => void response.write(`${JSON.stringify(event)}\n`);
    const bookmark = (): void =>
      tell({
        type: 'BOOKMARK',
        object: {
          apiVersion: target.type.apiVersion,
          kind: target.type.kind,
          metadata: { resourceVersion: String(store.version()) },
        },
      });
    const onChange = ({ type, object }: Change): void => {
      const isHere =
        object.kind === target.type.kind && object.metadata.namespace === target.namespace;
      if (isHere && isSelected(object, query)) tell({ type, object: shown(object) });
    };
    const end = (): void => {
      store.listeners.delete(onChange);
      watches.delete(watching);
      clearTimeout(timer);
    };
    const watching: Watching = {
      bookmark,
      mute: () => store.listeners.delete(onChange),
      expire() {
        const object = { ...statusOf(new Refused(410, 'Expired', 'too old resource version')) };
        tell({ type: 'ERROR', object });
        end();
        response.end();
      },
      cut() {
        end();
        response.destroy();
      },
    };
    const timer = setTimeout(
      () => {
        if (query.get('allowWatchBookmarks') === 'true') bookmark();
        response.end();
      },
      1000 * Number(query.get('timeoutSeconds') ?? 1800),
    ).unref();
    response.on('close', end);
    if (since === undefined) {
      watching.expire();
      return;
    }
    for (const change of since) onChange(change);
    store.listeners.add(onChange);
    watches.add(watching);
    for (const wake of waiting.splice(0)) wake();
  };

  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    // The client refuses plain HTTP without this setting.
    clusters: [{ name: 'test', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  };

  return {
    url,
    token,
    kubeconfig,
    async writeKubeconfig(directory) {
      const file = join(directory, 'kubeconfig.json');
      await writeFile(file, JSON.stringify(kubeconfig), { mode: 0o600 });
      return file;
    },
    store,
    kubelet,
    asked,
    fail(itsAnswer, { times = Infinity, matches = () => true } = {}) {
      faults.push({ answer: itsAnswer, times, matches });
    },
    recover() {
      faults = [];
    },
    async watched(count) {
      while (watches.size < count) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    bookmark() {
      for (const each of watches) each.bookmark();
    },
    cut() {
      for (const each of watches) each.cut();
    },
    mute() {
      for (const each of watches) each.mute();
    },
    expire() {
      store.compact();
      for (const each of watches) each.expire();
    },
    addNamespace,
    async close() {
      await kubelet.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Watching {
  bookmark(): void;
  mute(): void;
  expire(): void;
  cut(): void;
}

function fail(answer: FaultAnswer, request: IncomingMessage, response: ServerResponse): void {
  if (answer === 'cut') request.socket.destroy();
  if (typeof answer === 'string') return;
  const { status, headers = {}, message = 'made to fail' } = answer;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(statusOf(new Refused(status, 'Made', message))));
}

function send(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function statusOf({ status, reason, message, causes }: Refused): object {
  return {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    code: status,
    reason,
    message,
    details: { causes },
  };
}

function targetOf(path: string): Target {
  const match =
    /^\/(?:api|apis\/([a-z0-9.]+))\/(v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+)(?:\/(scale|status))?)?$/.exec(
      path,
    ) ?? undefined;
  const namespace = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(path)?.[1];
  const wanted = namespace === undefined ? match?.[4] : 'namespaces';
  const group = match?.[1];
  const apiVersion = group === undefined ? 'v1' : `${group}/v1`;
  const type = KINDS.find((kind) => kind.plural === wanted && kind.apiVersion === apiVersion);
  if (type === undefined) throw new Refused(404, 'NotFound', 'the server has no such resource');
  if (namespace !== undefined)
    return { type, namespace: '', name: namespace, subresource: undefined };
  return { type, namespace: match![3] ?? '', name: match![5], subresource: match![6] };
}

/** The API discovery documents. */
function discovery(path: string): object | undefined {
  const versions = [...new Set(KINDS.map(({ apiVersion }) => apiVersion))];
  if (path === '/version') return { major: '1', minor: '36', gitVersion: 'v1.36.0' };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') {
    const groups = versions.filter((version) => version.includes('/'));
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups.map((groupVersion) => ({
        name: groupVersion.split('/')[0],
        versions: [{ groupVersion, version: 'v1' }],
        preferredVersion: { groupVersion, version: 'v1' },
      })),
    };
  }
  const version = versions.find((each) => path === `/api${each === 'v1' ? '' : 's'}/${each}`);
  if (version === undefined) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: version,
    resources: KINDS.filter(({ apiVersion }) => apiVersion === version).map(({ kind, plural }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      namespaced: kind !== 'Namespace',
      kind,
      verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    })),
  };
}

function scaleOf({ metadata, spec, status }: Stored): object {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name, namespace, uid, resourceVersion },
    spec: { replicas: spec?.['replicas'] },
    status: { replicas: status?.['replicas'] ?? 0 },
  };
}

function isSelected(object: Stored, query: URLSearchParams): boolean {
  const pairs = (selector: string | null): string[][] =>
    (selector ?? '')
      .split(',')
      .filter((each) => each !== '')
      .map((each) => each.split(/==?/));
  const field = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, key) => (value as Json | undefined)?.[key], object);
  return (
    pairs(query.get('labelSelector')).every(
      ([key, value]) => object.metadata.labels?.[key!] === value,
    ) && pairs(query.get('fieldSelector')).every(([path, value]) => field(path!) === value)
  );
}

function nameFaults({ kind, metadata }: Stored): string[] {
  const labels = Object.entries(metadata.labels ?? {});
  const most = kind === 'Deployment' || kind === 'Namespace' ? 63 : 253;
  return [
    ...(NAME.test(metadata.name) && metadata.name.length <= most
      ? []
      : ['metadata.name: Invalid value']),
    ...labels
      .filter(([, value]) => !LABEL_VALUE.test(value))
      .map(([key]) => `metadata.labels[${key}]: Invalid value`),
  ];
}

function immutabilityFaults(before: Stored | undefined, after: Stored): string[] {
  const isSame = (read: (object: Stored) => unknown): boolean =>
    stable(read(before!)) === stable(read(after));
  if (after.kind === 'Deployment') {
    const { selector, template } = after.spec as { selector: Json; template: Stored };
    const wanted = Object.entries((selector['matchLabels'] ?? {}) as Record<string, string>);
    if (!wanted.every(([key, value]) => template.metadata.labels?.[key] === value)) {
      return ['spec.template.metadata.labels: `selector` does not match template `labels`'];
    }
    const { volumes = [], containers } = template.spec as Record<string, Json[]>;
    const mounts = containers!.flatMap((each) => (each['volumeMounts'] ?? []) as Json[]);
    const lost = mounts.filter(({ name }) => !volumes.some((volume) => volume['name'] === name));
    if (lost.length > 0)
      return lost.map(({ name }) => `volumeMounts: Not found: "${String(name)}"`);
    if (before !== undefined && !isSame(({ spec }) => spec!['selector'])) {
      return ['spec.selector: field is immutable'];
    }
  }
  if (before === undefined) return [];
  const isFixed = before.kind === 'ConfigMap' || before.kind === 'Secret';
  if (
    isFixed &&
    before['immutable'] === true &&
    !isSame((one) => [one['data'], one['immutable']])
  ) {
    return ['data: field is immutable when `immutable` is set'];
  }
  if (before.kind === 'PersistentVolumeClaim' && !isSame(({ spec }) => spec)) {
    return ['spec: spec is immutable after creation'];
  }
  return [];
}

/** The defaults of the API server that affect comparisons in the tests. */
function withDefaults(object: Stored): Stored {
  if (object.kind === 'PersistentVolumeClaim') {
    return { ...object, spec: { volumeMode: 'Filesystem', ...object.spec } };
  }
  if (object.kind === 'Secret' && object['stringData'] !== undefined) {
    const { stringData, data, ...rest } = object;
    const encoded = Object.entries(stringData as Record<string, string>).map(
      ([key, value]) => [key, Buffer.from(value).toString('base64')] as const,
    );
    return { ...rest, data: { ...(data as Json | undefined), ...Object.fromEntries(encoded) } };
  }
  if (object.kind !== 'Deployment') return object;
  const { template, ...spec } = object.spec as { template: Stored };
  const { containers, ...pod } = template.spec as { containers: Json[] };
  return {
    ...object,
    spec: {
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: 'RollingUpdate' },
      ...spec,
      template: {
        ...template,
        spec: {
          restartPolicy: 'Always',
          dnsPolicy: 'ClusterFirst',
          schedulerName: 'default-scheduler',
          ...pod,
          containers: containers.map((container) => ({
            imagePullPolicy: 'IfNotPresent',
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            ...container,
          })),
        },
      },
    },
  };
}

/** JSON Merge Patch, RFC 7386. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? target : {};
  const result: Json = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
