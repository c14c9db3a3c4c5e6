import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ServiceError } from '../src/base/errors.ts';

/** Whether the daemon starts when its user logs in, or when the machine boots. */
export type ServiceScope = 'user' | 'system';

export interface Service {
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly writable: readonly string[];
  /** User of the process; undefined for the user that starts the service. */
  readonly user?: string | undefined;
}

type Command = readonly [program: string, ...args: string[]];

/** File format and commands of a service manager. */
export interface ServiceManager {
  readonly path: string;
  readonly describe: (service: Service) => string;
  /** Parses such a file; the values are empty for a file of another form. */
  readonly read: (text: string) => Pick<Service, 'program' | 'environment'>;
  /** Reloads the service files; fails if the manager cannot be reached. */
  readonly reload: Command;
  /** Fails if the service does not run. */
  readonly isRunning: Command;
  /** Starts the service now and at each login or boot. */
  readonly start: Command;
  /** Fails if the service does not exist. */
  readonly stop: Command;
  /** Other files to remove with the service if the manager cannot be reached. */
  readonly traces: readonly string[];
}

const UNIT = 'service-local.service';
const LABEL = 'service-local.daemon';

/** @throws ServiceError `usage` on a platform without a supported service manager */
export function serviceManager(
  platform: NodeJS.Platform,
  scope: ServiceScope,
  env: NodeJS.ProcessEnv,
): ServiceManager {
  const isUser = scope === 'user';
  const home = env['HOME'] || homedir();
  if (platform === 'linux') {
    const config = env['XDG_CONFIG_HOME'] || join(home, '.config');
    const systemctl = (...args: string[]): Command => [
      'systemctl',
      ...(isUser ? ['--user'] : []),
      ...args,
    ];
    const units = isUser ? join(config, 'systemd/user') : '/etc/systemd/system';
    return {
      path: join(units, UNIT),
      describe: (service) => systemdUnit(service, scope),
      read: readUnit,
      reload: systemctl('daemon-reload'),
      isRunning: systemctl('is-active', '--quiet', UNIT),
      start: systemctl('enable', '--now', UNIT),
      stop: systemctl('disable', '--now', UNIT),
      traces: [join(units, `${targetOf(scope)}.wants`, UNIT)],
    };
  }
  if (platform === 'darwin') {
    const directory = isUser ? join(home, 'Library/LaunchAgents') : '/Library/LaunchDaemons';
    const path = join(directory, `${LABEL}.plist`);
    const domain = isUser ? `gui/${process.getuid?.()}` : 'system';
    return {
      path,
      describe: launchdPlist,
      read: readPlist,
      reload: ['launchctl', 'print', domain],
      isRunning: ['launchctl', 'print', `${domain}/${LABEL}`],
      start: ['launchctl', 'bootstrap', domain, path],
      stop: ['launchctl', 'bootout', `${domain}/${LABEL}`],
      traces: [],
    };
  }
  throw new ServiceError('usage', `services are not supported on ${platform}`, {
    remedy: 'Configure your service manager to run `service-local daemon run`.',
  });
}

const CARRIED_PATHS = [
  'SERVICE_LICENSE_LEASE_PATH',
  'SERVICE_LICENSE_PUBLIC_KEY_PATH',
  'NODE_EXTRA_CA_CERTS',
];
const CARRIED_VALUES = ['SERVICE_LICENSE_ROOT'];
const CARRIED_PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [
  name,
  name.toLowerCase(),
]);

/**
 * Returns the variables that the service needs from the environment of its installation. Names of
 * needed variables with a password are in `secret` instead, because every user can read a service file.
 */
export function serviceEnvironment(env: NodeJS.ProcessEnv): {
  readonly environment: Readonly<Record<string, string>>;
  readonly secret: readonly string[];
} {
  const given = (names: readonly string[]): [string, string][] =>
    names.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  const proxies = given(CARRIED_PROXIES);
  const isSecret = ([, value]: [string, string]): boolean => value.includes('@');
  return {
    environment: Object.fromEntries([
      ...given(CARRIED_PATHS).map(([name, path]) => [name, resolve(path)]),
      ...given(CARRIED_VALUES),
      ...proxies.filter((one) => !isSecret(one)),
    ]) as Record<string, string>,
    secret: proxies.filter(isSecret).map(([name]) => name),
  };
}

/** Needs no privileges, so that it also works in the service manager of a user. */
const HARDENING = `NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077
`;
/** Without MemoryDenyWriteExecute, because V8 compiles to machine code at run time. */
const SYSTEM_HARDENING = `AmbientCapabilities=
CapabilityBoundingSet=
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
`;

/** See systemd.service(5) and systemd.exec(5). */
function systemdUnit(service: Service, scope: ServiceScope): string {
  const { program, environment, writable, user } = service;
  const isSystem = scope === 'system';
  const [node, ...args] = program.map(quoted);
  const command = [node, ...args.map((arg) => arg.replaceAll('$', '$$$$')), 'daemon', 'run'];
  const variables = Object.entries(environment).map(
    ([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`,
  );
  return `[Unit]
Description=Keeps the license of service-local fresh
${isSystem ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=${command.join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=30
WatchdogSec=120
TimeoutStopSec=10
${user === undefined ? '' : `User=${user}\n`}${variables.join('')}${HARDENING}${
    isSystem ? `${SYSTEM_HARDENING}ReadWritePaths=${writable.map(quoted).join(' ')}\n` : ''
  }
[Install]
WantedBy=${targetOf(scope)}
`;
}

function targetOf(scope: ServiceScope): string {
  return scope === 'system' ? 'multi-user.target' : 'default.target';
}

/** Quotes and escapes one word; see systemd.syntax(7). */
function quoted(text: string): string {
  const escaped = text
    .replaceAll(/["\\]/g, String.raw`\$&`)
    .replaceAll('%', '%%')
    .replaceAll(/\p{Cc}/gu, (one) => `\\x${one.codePointAt(0)!.toString(16).padStart(2, '0')}`);
  return `"${escaped}"`;
}

function readUnit(text: string): ReturnType<ServiceManager['read']> {
  const valuesOf = (name: string): string[] =>
    Array.from(text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value]) => value!);
  const [node, ...args] = valuesOf('ExecStart').flatMap(unquoted);
  const program = args.map((arg) => arg.replaceAll('$$', '$'));
  return {
    program: node === undefined ? [] : [node, ...withoutVerb(program)],
    environment: Object.fromEntries(valuesOf('Environment').flatMap(unquoted).map(variable)),
  };
}

/** Splits into words, with or without quotes. */
function unquoted(words: string): readonly string[] {
  return Array.from(words.matchAll(/"((?:[^"\\]|\\.)*)"|[^\s"]+/g), ([word, inner = word]) =>
    inner
      .replaceAll(/\\(?:x([0-9a-f]{2})|(.))/g, (_, code?: string, one?: string) =>
        code === undefined ? one! : String.fromCodePoint(Number.parseInt(code, 16)),
      )
      .replaceAll('%%', '%'),
  );
}

function variable(text: string): readonly [name: string, value: string] {
  const [name = ''] = text.split('=', 1);
  return [name, text.slice(name.length + 1)];
}

/** Removes the final `daemon run`. */
function withoutVerb(words: readonly string[]): readonly string[] {
  return words.slice(0, -2);
}

/** See launchd.plist(5). */
function launchdPlist({ program, environment, user }: Service): string {
  const words = [...program, 'daemon', 'run'].map((word) => `    ${element('string', word)}\n`);
  const variables = Object.entries(environment).map(
    ([name, value]) => `    ${element('key', name)}\n    ${element('string', value)}\n`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words.join('')}  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('')}  </dict>
${user === undefined ? '' : `  <key>UserName</key>\n  ${element('string', user)}\n`}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>30</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
`;
}

function element(name: string, text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<${name}>${escaped}</${name}>`;
}

function readPlist(text: string): ReturnType<ServiceManager['read']> {
  const valuesOf = (name: string): string[] => {
    const [part = ''] = new RegExp(`<key>${name}</key>.*?</(array|dict)>`, 's').exec(text) ?? [];
    return Array.from(part.matchAll(/<(key|string)>(.*?)<\/\1>/gs), ([, , value]) => value!)
      .slice(1)
      .map((value) =>
        value.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
      );
  };
  const variables = valuesOf('EnvironmentVariables');
  const pairs = variables.flatMap((name, i) => (i % 2 === 0 ? [[name, variables[i + 1]!]] : []));
  return {
    program: withoutVerb(valuesOf('ProgramArguments')),
    environment: Object.fromEntries(pairs) as Record<string, string>,
  };
}
