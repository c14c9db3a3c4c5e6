import { createRequire } from 'node:module';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import type { ClusterDefinition } from './clusters-file.ts';

/** The parts of the official client that are used here. */
interface Client {
  readonly KubeConfig: new () => KubeConfig;
  readonly RequestContext: new (url: string, method: string) => RequestContext;
  createConfiguration(): {
    readonly httpApi: {
      send(context: RequestContext): { toPromise(): Promise<ResponseContext> };
    };
  };
}

export interface KubeConfig {
  loadFromFile(file: string): void;
  loadFromCluster(): void;
  setCurrentContext(name: string): void;
  getContextObject(name: string): unknown;
  getCurrentCluster(): { readonly server: string } | null;
  getCurrentUser(): Readonly<Record<string, unknown>> | null;
  applySecurityAuthentication(context: RequestContext): Promise<void>;
}

export interface Dispatcher {
  close(): Promise<void>;
}

export interface RequestContext {
  setQueryParam(name: string, value: string): void;
  setHeaderParam(name: string, value: string): void;
  getHeaders(): Readonly<Record<string, string>>;
  setBody(body: string): void;
  setSignal(signal: AbortSignal): void;
  getDispatcher(): Dispatcher | undefined;
  setDispatcher(dispatcher: Dispatcher): void;
}

export interface ResponseContext {
  readonly httpStatusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { text(): Promise<string>; stream(): AsyncIterable<Uint8Array> | null };
}

/** @throws ServiceError `conflict`, reason `invalid_kubeconfig` or `not_in_cluster` */
export function readConfig(
  client: Client,
  { kubeconfig, context, in_cluster }: ClusterDefinition,
): KubeConfig {
  const config = new client.KubeConfig();
  if (in_cluster === true) {
    if (process.env['KUBERNETES_SERVICE_HOST'] === undefined) {
      throw new ServiceError(
        'conflict',
        'in_cluster is set, but the server does not run in a cluster',
        {
          reason: 'not_in_cluster',
          remedy: 'Set kubeconfig instead of in_cluster in clusters_file.',
        },
      );
    }
    config.loadFromCluster();
    return config;
  }
  const invalid = (message: string): ServiceError =>
    new ServiceError('conflict', `the kubeconfig ${kubeconfig!} ${message}`, {
      reason: 'invalid_kubeconfig',
      remedy: 'Correct it, or set another kubeconfig in clusters_file.',
    });
  try {
    config.loadFromFile(kubeconfig!);
  } catch (error) {
    // The message of the parser quotes the file, which contains credentials.
    throw invalid(
      isSystemError(error) ? `cannot be read: ${error.code!}` : 'is not a valid kubeconfig',
    );
  }
  if (context !== undefined) {
    if (!config.getContextObject(context)) {
      throw invalid(`has no context ${JSON.stringify(context)}`);
    }
    config.setCurrentContext(context);
  }
  if (!config.getCurrentCluster()?.server) throw invalid('does not specify a cluster');
  return config;
}

/** @throws ServiceError `conflict`, reason `not_installed` */
export function loadClient(): Client {
  try {
    return createRequire(import.meta.url)('@kubernetes/client-node') as Client;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', 'the package @kubernetes/client-node is not installed', {
      reason: 'not_installed',
      remedy: 'Install it next to service-local with `npm install @kubernetes/client-node`.',
    });
  }
}
