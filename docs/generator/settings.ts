import {
  SETTINGS,
  SETTING_KEYS,
  defaultText,
  environmentName,
  flagName,
} from '../../src/base/settings.ts';
import { blocks, bullets, code, prose, sentence } from './markdown.ts';
import type { Page } from './page.ts';

/** Environment variables that are not settings. `test/docs/reference.test.ts` checks that none is missing. */
const VARIABLES: Readonly<Record<string, string>> = {
  DATABASE_URL:
    'PostgreSQL database of the server and its workers, such as `postgres://user@host/name`. Without it, the server uses SQLite in its home directory.',
  SERVICE_LOCAL_TOKEN: 'API token. It takes precedence over the token that `login` has stored.',
  SERVICE_LOCAL_LAUNCHED:
    'Set by `service-local` for the process that it starts on a newer Node, which ends with it. Do not set it.',
  SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PATH:
    'File with the private key that signs leases, in PKCS#8 PEM.',
  SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: 'The same key as text.',
  SERVICE_LICENSE_LEASE_PATH: 'File of the lease, instead of the one in the home directory.',
  SERVICE_LICENSE_PUBLIC_KEY_PATH:
    'File of the keys that verify the lease, instead of the one in the home directory.',
  SERVICE_LICENSE_LEASE: 'The lease as text, for `license materialize` in a container.',
  SERVICE_LICENSE_PUBLIC_KEY: 'The keys as text, for `license materialize` in a container.',
  SERVICE_LICENSE_ROOT: 'Fingerprint of the root that license keys must descend from.',
  SERVICE_CHAT_API_KEY: 'Key of the provider of the language model.',
  HTTPS_PROXY: 'Proxy of requests to https servers. `HTTP_PROXY` and `NO_PROXY` work as usual.',
  NODE_EXTRA_CA_CERTS: 'File with certificates of your own authorities, in PEM.',
  NO_COLOR: 'Turns colors off.',
  FORCE_COLOR: 'Turns colors on, also where the output is not a terminal.',
};

/** Variables on the page that belong to no setting. */
export const VARIABLE_NAMES = Object.keys(VARIABLES);

/** Every setting and environment variable. */
export function settingsPage(): Page {
  const text = blocks(
    '# Settings and environment variables',
    'The first source that has a value decides: the option of the command, the environment variable, the project file, the user file, the default. `service-local config explain SETTING` shows which one it is.',
    'The project file is `service-local.yaml` in the current directory or the nearest directory above it. The user file is `config.yaml` in the home directory. Both have lines such as `workers: 4`.',
    '## Settings',
    ...SETTING_KEYS.map(settingSection),
    '## Other environment variables',
    ...Object.entries(VARIABLES).map(([name, meaning]) => blocks(`### ${name}`, meaning)),
  );
  return { path: 'settings.md', text };
}

const FILES = { user: 'user file only', none: 'no file' } as const;

function settingSection(key: (typeof SETTING_KEYS)[number]): string {
  const { description, type, files } = SETTINGS[key];
  return blocks(
    `### ${key}`,
    sentence(description),
    bullets([
      `Value: ${prose(type.name)}`,
      `Default: ${code(defaultText(key))}`,
      `Variable: ${code(environmentName(key))}`,
      ...(key === 'home' || key === 'color' ? [] : [`Option: ${code(flagName(key))}`]),
      ...(files === undefined ? [] : [`Set in: ${FILES[files]}`]),
    ]),
  );
}
