import { expect, test } from 'vitest';
import { whyEphemeral } from '../../src/base/ephemeral-directory.ts';

const POD = [
  '1 0 0:50 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b',
  '2 1 0:51 / /tmp rw - tmpfs tmpfs rw',
  '3 1 259:1 /var/lib/kubelet/pods/0198/volumes/kubernetes.io~empty-dir/home /srv/home rw,relatime shared:1 - ext4 /dev/root rw',
  '4 3 259:2 / /srv/home/event-archive rw - ext4 /dev/sdb rw',
  String.raw`5 1 259:3 / /srv/two\040words rw - nfs4 server:/volume rw`,
].join('\n');
const KUBERNETES = { KUBERNETES_SERVICE_HOST: '10.0.0.1' };

test('directories of a pod are not durable, except on a volume that outlives it', () => {
  const why = (directory: string, env = {}): string | undefined =>
    whyEphemeral(directory, env, POD);
  expect(why('/srv/home/other', KUBERNETES)).toBe('/srv/home is an emptyDir of its pod');
  expect(why('/srv/home/other')).toBe('/srv/home is an emptyDir of its pod');
  expect(why('/srv/home/event-archive', KUBERNETES)).toBeUndefined();
  expect(why('/srv/two words/archive', KUBERNETES)).toBeUndefined();
  expect(why('/tmp/archive', KUBERNETES)).toBe('/tmp is in memory');
  expect(why('/srv/archive', KUBERNETES)).toBe('/ belongs to the container');
  expect(why('/srv/archive')).toBeUndefined();
});
