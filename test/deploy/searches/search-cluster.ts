import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inProcess } from '../../cli/in-process.ts';
import type { Result } from '../../cli/service-local.ts';
import { startApiServer, type TestApiServer } from '../kubernetes/api-server.ts';
import { startJobController, type JobController } from './job-controller.ts';

/** Runs the command of a pod. @returns its exit code */
export type RunPod = (command: readonly string[], index: number) => Promise<number | null>;

/** A simulated cluster `lab` that runs the pods of searches in this process, and its clusters file. */
export interface SearchCluster {
  readonly directory: string;
  /** Directory of the volume that pods mount. */
  readonly volume: string;
  readonly server: TestApiServer;
  readonly controller: JobController;
  readonly env: Readonly<Record<string, string>>;
  /** Replaces how pods run. */
  onPod: RunPod;
  /** Runs the pod of a search, as in a cluster. */
  readonly runPod: RunPod;
  /** Runs the CLI with this cluster. */
  readonly run: (words: readonly string[]) => Promise<Result>;
  /** Sets the fields of `searches`. */
  readonly storeIn: (searches: object) => Promise<void>;
  readonly rowsOf: (place: string) => Promise<string>;
  readonly close: () => Promise<void>;
}

export async function startSearchCluster(): Promise<SearchCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'service-local-on-cluster-'));
  const volume = join(directory, 'volume');
  await mkdir(volume);
  const server = await startApiServer();
  server.addNamespace('bots');
  const own = {
    kubeconfig: await server.writeKubeconfig(directory),
    owner: 'own',
    namespace: 'bots',
    image: 'registry.invalid/sl:1',
    control_url: 'https://bots.example',
  };
  const clusters = join(directory, 'clusters.yaml');
  const storeIn = (searches: object): Promise<void> =>
    writeFile(clusters, JSON.stringify({ lab: { ...own, searches }, bare: own }));
  await storeIn({ store: volume, claim: 'searches' });
  const runPod: RunPod = async ([, ...words], index) => {
    const [run, shard, store, manifest] = words as [string, string, string, string];
    const place = store === '/searches' ? volume : store;
    const env = { JOB_COMPLETION_INDEX: String(index) };
    return (await inProcess([run, shard, place, manifest], { env })).code;
  };
  const cluster: SearchCluster = {
    directory,
    volume,
    server,
    controller: startJobController(server.store, (command, index) => cluster.onPod(command, index)),
    env: { SERVICE_LOCAL_HOME: join(directory, 'home'), SERVICE_LOCAL_CLUSTERS_FILE: clusters },
    onPod: runPod,
    runPod,
    run: (words) => inProcess([...words, '--json'], { env: cluster.env }),
    storeIn,
    rowsOf: (place) => readFile(join(directory, place, 'trials.csv'), 'utf8'),
    async close() {
      cluster.controller.close();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
  return cluster;
}
