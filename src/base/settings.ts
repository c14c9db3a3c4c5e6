import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import {
  boolean,
  count,
  countOrNone,
  directory,
  file,
  host,
  megabytes,
  oneOf,
  port,
  proxies,
  seconds,
  type SettingType,
  visibleAscii,
  webOrigin,
  webOriginOrAuto,
  webUrlOrAuto,
  wholeSeconds,
} from './setting-types.ts';

type SettingSpec<T> = SettingDefault<T> & {
  readonly type: SettingType<T>;
  readonly description: string;
  /** The option; by default `--` and the setting's name with dashes. */
  readonly flag?: string;
  /**
   * Restricts which configuration files can set it; by default both can. A project may come from
   * other people, so it must not decide where secrets are sent. `home` determines where the user
   * file is, so no file can set it.
   */
  readonly files?: 'user' | 'none';
};

type SettingDefault<T> =
  | { readonly default: T }
  | {
      readonly defaultFrom: (cwd: string, home: string) => T;
      readonly defaultText: string;
    };

const DAY = 86_400;
/** These bounds keep the sum of TTL and grace period within the limits of `src/lease`. */
const ttl = wholeSeconds(300, 4 * 365 * DAY);
const gracePeriod = wholeSeconds(0, 365 * DAY);

function fileInHome(name: string): SettingDefault<string> {
  return { defaultFrom: (_cwd, home) => join(home, name), defaultText: `<home>/${name}` };
}

const TABLE = {
  home: {
    type: directory,
    description: 'directory of the user file and of everything kept between runs',
    defaultFrom: () => join(homedir(), '.service-local'),
    defaultText: '~/.service-local',
    files: 'none',
  },
  runs_dir: {
    type: directory,
    description: 'directory to which backtests write their results',
    defaultFrom: (cwd: string) => join(cwd, 'runs'),
    defaultText: './runs',
  },
  catalogue_dir: {
    type: directory,
    description: 'directory of imported market data',
    ...fileInHome('catalogue'),
  },
  event_archive_dir: {
    type: directory,
    description: 'directory of archived events of bots',
    files: 'user',
    ...fileInHome('event-archive'),
  },
  exchanges_file: {
    type: file,
    description: 'exchanges for live market data and production orders',
    files: 'user',
    ...fileInHome('exchanges.yaml'),
  },
  cloud_file: {
    type: file,
    description: "customers' installations that receive their lease through a secret store",
    flag: '--config',
    files: 'user',
    ...fileInHome('cloud.yaml'),
  },
  clusters_file: {
    type: file,
    description: 'Kubernetes clusters to which bots are deployed',
    files: 'user',
    ...fileInHome('clusters.yaml'),
  },
  knowledge_file: {
    type: file,
    description: 'other servers whose knowledge is searched, too',
    files: 'user',
    ...fileInHome('knowledge.yaml'),
  },
  notifications_file: {
    type: file,
    description: 'webhooks, e-mail and Telegram chats to which notifications are sent',
    files: 'user',
    ...fileInHome('notifications.yaml'),
  },
  task_file_days: {
    type: countOrNone,
    description:
      'days after the end of a task after which the server deletes its files; 0 keeps them',
    files: 'user',
    default: 365,
  },
  workers: {
    type: count,
    description: 'worker threads of a sweep, and concurrent tasks of a server or worker',
    defaultFrom: () => availableParallelism(),
    defaultText: 'the number of processors',
  },
  paper_sessions: {
    type: count,
    description: 'maximum number of concurrent paper trading sessions of a server',
    default: 1000,
  },
  production_deployments: {
    type: count,
    description: 'maximum number of production deployments that a server supervises',
    default: 100,
  },
  strategy_timeout_seconds: {
    type: seconds,
    description: 'time after which a strategy that does not return is stopped',
    default: 30,
  },
  strategy_memory_mb: {
    type: megabytes,
    description: 'memory limit of your own strategy in a run, including typed arrays and buffers',
    flag: '--strategy-memory',
    default: 1024,
  },
  custom_code: {
    type: boolean,
    description: 'whether the server accepts and runs strategy code that is uploaded with a bot',
    files: 'user',
    default: false,
  },
  custom_code_memory_mb: {
    type: megabytes,
    description: 'memory limit of an uploaded strategy on the server',
    files: 'user',
    default: 512,
  },
  color: {
    type: oneOf('auto', 'always', 'never'),
    description: 'colors in the output; auto follows the terminal, NO_COLOR and FORCE_COLOR',
    default: 'auto',
  },
  server_host: {
    type: host,
    description: 'address on which the server listens',
    flag: '--host',
    files: 'user',
    default: '127.0.0.1',
  },
  server_port: {
    type: port,
    description: 'port on which the server listens; 0 selects a free one',
    flag: '--port',
    files: 'user',
    default: 8787,
  },
  server_public_url: {
    type: webOriginOrAuto,
    description: "the server's origin as clients see it; auto derives it from host and port",
    flag: '--public-url',
    files: 'user',
    default: 'auto',
  },
  server_trusted_proxies: {
    type: proxies,
    description:
      'proxies whose X-Forwarded-For header is trusted; auto trusts those on this machine if server_public_url is set',
    flag: '--trusted-proxies',
    files: 'user',
    default: 'auto',
  },
  server_tasks: {
    type: boolean,
    description: 'whether the server runs tasks itself; false leaves them to workers',
    files: 'user',
    default: true,
  },
  server_url: {
    type: webOrigin,
    description: 'origin of the server to connect to',
    flag: '--url',
    files: 'user',
    default: 'http://127.0.0.1:8787',
  },
  server_insecure: {
    type: boolean,
    description: 'whether license commands and the daemon may use http:// to another host',
    files: 'user',
    default: false,
  },
  chat_provider: {
    type: oneOf('none', 'openai_compatible', 'anthropic'),
    description:
      'provider of the language model for research bots, with its key in SERVICE_CHAT_API_KEY; none selects the embedded analyst',
    files: 'user',
    default: 'none',
  },
  chat_model: {
    type: visibleAscii,
    description: "name of the provider's model",
    files: 'user',
    default: 'none',
  },
  chat_base_url: {
    type: webUrlOrAuto,
    description: "base URL of the provider's API; auto selects the provider's own",
    files: 'user',
    default: 'auto',
  },
  chat_turns: {
    type: count,
    description: 'maximum number of requests to the model for one answer',
    files: 'user',
    default: 8,
  },
  chat_seconds: {
    type: wholeSeconds(1, 3600),
    description: 'maximum duration of one answer',
    files: 'user',
    default: 120,
  },
  chat_tokens: {
    type: count,
    description: 'maximum number of input and output tokens for one answer',
    files: 'user',
    default: 100_000,
  },
  license_enforcement_enabled: {
    type: boolean,
    description: 'whether the server rejects requests that its own license does not permit',
    files: 'user',
    default: true,
  },
  license_registry_enforced: {
    type: boolean,
    description: 'whether the server refuses to renew revoked leases',
    files: 'user',
    default: true,
  },
  license_clone_policy: {
    type: oneOf('alert', 'refuse'),
    description: 'what the server does when a lease that was already renewed is renewed again',
    files: 'user',
    default: 'alert',
  },
  license_ttl_seconds: {
    type: ttl,
    description: 'TTL of leases for which neither plan, contract nor request states one',
    files: 'user',
    default: 7 * DAY,
  },
  license_ttl_max_seconds: {
    type: ttl,
    description: 'maximum TTL of leases',
    files: 'user',
    default: 90 * DAY,
  },
  license_grace_period_seconds: {
    type: gracePeriod,
    description: 'grace period of leases for which neither plan, contract nor request states one',
    files: 'user',
    default: 3 * DAY,
  },
  license_grace_period_max_seconds: {
    type: gracePeriod,
    description: 'maximum grace period of leases',
    files: 'user',
    default: 30 * DAY,
  },
  license_issuer: {
    type: visibleAscii,
    description: 'name of the issuer in leases',
    files: 'user',
    default: 'service-local',
  },
  license_product: {
    type: visibleAscii,
    description:
      'product in leases whose plan states none, and the product that the lease of this server must be for',
    files: 'user',
    default: 'service-local',
  },
} as const;

type Table = typeof TABLE;
export type SettingKey = keyof Table;

/** Settings that a command can take as an option. Color has the global option `--no-color`. */
export type FlagSetting = Exclude<SettingKey, 'home' | 'color'>;

/** The values, parsed and checked. Paths are absolute. */
export type Settings = {
  readonly [K in SettingKey]: NonNullable<ReturnType<Table[K]['type']['parse']>>;
};

export const SETTINGS: { readonly [K in SettingKey]: SettingSpec<Settings[K]> } = TABLE;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

export const FLAG_SETTINGS = SETTING_KEYS.filter((key) => key !== 'home' && key !== 'color');

/** @param home the home directory, which is the default directory of most files. */
export function defaultValue<K extends SettingKey>(key: K, cwd: string, home: string): Settings[K] {
  const spec: SettingDefault<Settings[K]> = SETTINGS[key];
  return 'default' in spec ? spec.default : spec.defaultFrom(cwd, home);
}

/** The default as help shows it. */
export function defaultText(key: SettingKey): string {
  const spec: SettingSpec<Settings[SettingKey]> = SETTINGS[key];
  if ('defaultText' in spec) return spec.defaultText;
  return spec.type.format?.(spec.default) ?? String(spec.default);
}

/** `SERVICE_LOCAL_RUNS_DIR` for `runs_dir`. */
export function environmentName(key: SettingKey): string {
  return `SERVICE_LOCAL_${key.toUpperCase()}`;
}

/** `--runs-dir` for `runs_dir`. */
export function flagName(key: SettingKey): string {
  return SETTINGS[key].flag ?? `--${key.replaceAll('_', '-')}`;
}
