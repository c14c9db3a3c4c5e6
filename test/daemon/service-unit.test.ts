import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serviceEnvironment, serviceManager } from '../../daemon/service-unit.ts';

const SERVICE = {
  program: ['/opt/a b$c%d/node', '/srv/$HOME "bin"/service-local.js'],
  environment: { SERVICE_LOCAL_HOME: '/home/me/50 % "off"\\', HTTP_PROXY: 'http://proxy:3128' },
  writable: ['/home/me/50 % "off"\\', '/var/lib/licenses'],
};

it('a systemd unit escapes all special characters', () => {
  const user = serviceManager('linux', 'user', { HOME: '/home/me' });
  expect(user.path).toBe('/home/me/.config/systemd/user/service-local.service');
  const lines = user.describe(SERVICE).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      'Type=notify',
      String.raw`ExecStart="/opt/a b$c%%d/node" "/srv/$$HOME \"bin\"/service-local.js" daemon run`,
      String.raw`Environment="SERVICE_LOCAL_HOME=/home/me/50 %% \"off\"\\"`,
      'Environment="HTTP_PROXY=http://proxy:3128"',
      'StartLimitIntervalSec=0',
      'Restart=on-failure',
      'WatchdogSec=120',
      'NoNewPrivileges=yes',
      'WantedBy=default.target',
    ]),
  );
  expect(lines.filter((line) => /^(User|Protect|ReadWritePaths)/.test(line))).toEqual([]);
  const elsewhere = serviceManager('linux', 'user', {
    HOME: '/home/me',
    XDG_CONFIG_HOME: '/etc/me',
  });
  expect(elsewhere.path).toBe('/etc/me/systemd/user/service-local.service');
});

it("a systemd unit of the system can write only to the service's directories", () => {
  const system = serviceManager('linux', 'system', { HOME: '/root' });
  expect(system.path).toBe('/etc/systemd/system/service-local.service');
  expect(system.start).toEqual(['systemctl', 'enable', '--now', 'service-local.service']);
  expect(system.describe({ ...SERVICE, user: 'me' }).split('\n')).toEqual(
    expect.arrayContaining([
      'User=me',
      'ProtectSystem=strict',
      'CapabilityBoundingSet=',
      String.raw`ReadWritePaths="/home/me/50 %% \"off\"\\" "/var/lib/licenses"`,
      'WantedBy=multi-user.target',
    ]),
  );
});

it('the launchd service is a property list', () => {
  const { path, describe, start } = serviceManager('darwin', 'user', { HOME: '/Users/me' });
  expect(path).toBe('/Users/me/Library/LaunchAgents/service-local.daemon.plist');
  expect(start.slice(0, 2)).toEqual(['launchctl', 'bootstrap']);
  const program = ['/opt/node', '/a <b> & c'];
  const text = describe({ ...SERVICE, program });
  expect(text).toContain('<string>/a &lt;b&gt; &amp; c</string>\n    <string>daemon</string>');
  expect(text).toContain('<key>HTTP_PROXY</key>\n    <string>http://proxy:3128</string>');
  expect(text).not.toContain('UserName');
  const machine = serviceManager('darwin', 'system', {});
  expect(machine.path).toBe('/Library/LaunchDaemons/service-local.daemon.plist');
  expect(machine.describe({ ...SERVICE, user: 'me' })).toContain(
    '<key>UserName</key>\n  <string>me</string>',
  );
});

it.each(['linux', 'darwin'] as const)(
  'a service file is parsed as it was written, on %s',
  (platform) => {
    const { describe, read } = serviceManager(platform, 'user', { HOME: '/home/me' });
    const environment = { ...SERVICE.environment, NODE_EXTRA_CA_CERTS: '/a <b> & c\n=d' };
    const program = ['/opt/a b$c%d/node', '--no-opt', ...SERVICE.program.slice(1)];
    expect(read(describe({ ...SERVICE, program, environment }))).toEqual({ program, environment });
    expect(read('')).toEqual({ program: [], environment: {} });
  },
);

it('services are rejected on other platforms', () => {
  expect(() => serviceManager('win32', 'user', {})).toThrow('services are not supported on win32');
});

it('a service gets the variables that it needs, without secrets', () => {
  const env = {
    PATH: '/bin',
    SERVICE_LOCAL_TOKEN: 'slt_secret',
    SERVICE_LICENSE_LEASE: '{}',
    SERVICE_LICENSE_LEASE_PATH: 'lease.json',
    SERVICE_LICENSE_PUBLIC_KEY_PATH: '/keys.json',
    NODE_EXTRA_CA_CERTS: '',
    https_proxy: 'http://user:password@proxy:3128',
    HTTP_PROXY: 'http://proxy:3128',
    NO_PROXY: '.local',
  };
  expect(serviceEnvironment(env)).toEqual({
    environment: {
      SERVICE_LICENSE_LEASE_PATH: join(process.cwd(), 'lease.json'),
      SERVICE_LICENSE_PUBLIC_KEY_PATH: '/keys.json',
      HTTP_PROXY: 'http://proxy:3128',
      NO_PROXY: '.local',
    },
    secret: ['https_proxy'],
  });
});
