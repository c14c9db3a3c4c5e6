import type { Egress } from './clusters-file.ts';

/** One deployment of one version of a bot; everything its manifests are made of. */
export interface DeployPlan {
  readonly deployment_id: string;
  readonly bot_id: string;
  readonly slug: string;
  readonly version: number;
  /** Of the spec as it was authored. */
  readonly spec_hash: string;
  readonly namespace: string;
  readonly image: string;
  /** Texts that the runner reads; no secret is among them. */
  readonly files: {
    readonly 'run.json': string;
    readonly 'bot.json': string;
    readonly 'bundle.json'?: string;
  };
  /** Name of the Secret with `apiKey`, `secret` and what else the exchange needs. */
  readonly credentials_secret: string | null;
  /** Name of the Secret with `lease` and `public_key`. */
  readonly lease_secret: string | null;
  readonly storage_class?: string | undefined;
  readonly access_mode?: 'ReadWriteOnce' | 'ReadWriteOncePod' | undefined;
  readonly resources?: { readonly cpu: string; readonly memory: string } | undefined;
  readonly egress?: readonly Egress[] | undefined;
  readonly replicas: 0 | 1;
  readonly control_url: string;
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}
