import { expect, test } from 'vitest';
import { readMachineHash, type MachineIdSource } from '../../src/gate/machine-id.ts';
import { machineHash } from '../../src/lease/use.ts';

const ID = 'b08dfa6083e7567a1921a715000001fb';
const UUID = '9C2E4F6A-1B3D-4E5F-8A7B-0C1D2E3F4A5B';

/** A machine with these files, whose programs print this. */
function machine(
  platform: NodeJS.Platform,
  files: Readonly<Record<string, string>>,
  output?: string,
): MachineIdSource {
  return {
    platform,
    async readText(path) {
      const text = files[path];
      if (text === undefined)
        throw Object.assign(new Error(path), { code: 'ENOENT', syscall: 'open' });
      return text;
    },
    async run() {
      if (output === undefined) throw new Error('no such program');
      return output;
    },
  };
}

test.each<[string, MachineIdSource, string | undefined]>([
  ['of systemd', machine('linux', { '/etc/machine-id': `${ID}\n` }), ID],
  ['of D-Bus, where there is no other', machine('linux', { '/var/lib/dbus/machine-id': ID }), ID],
  [
    'of D-Bus, where the other is empty as in an image',
    machine('linux', { '/etc/machine-id': '', '/var/lib/dbus/machine-id': ID }),
    ID,
  ],
  ['that is not set yet', machine('linux', { '/etc/machine-id': 'uninitialized\n' }), undefined],
  ['of nothing but zeros', machine('linux', { '/etc/machine-id': '0'.repeat(32) }), undefined],
  ['of a container without one', machine('linux', {}), undefined],
  ['of macOS', machine('darwin', {}, `    "IOPlatformUUID" = "${UUID}"\n`), UUID.toLowerCase()],
  ['of macOS that says none', machine('darwin', {}, '{}'), undefined],
  [
    'of Windows',
    machine('win32', {}, `\r\nHKEY_LOCAL_MACHINE\r\n    MachineGuid    REG_SZ    ${UUID}\r\n`),
    UUID,
  ],
  ['of Windows without the program', machine('win32', {}), undefined],
  ['of another system', machine('aix', { '/etc/machine-id': ID }), undefined],
])('the id %s is read', async (_of, source, id) => {
  const expected = id === undefined ? undefined : machineHash(id);
  expect(await readMachineHash(source)).toBe(expected);
});
