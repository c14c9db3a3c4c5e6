import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { manifests } from '../../src/deploy/kubernetes/manifests.ts';
import { packageVersion } from '../../src/base/package-version.ts';
import { testPlan } from '../deploy/kubernetes/plan.ts';
import { render } from './helm.ts';

const ROOT = join(import.meta.dirname, '../..');
const { devDependencies, peerDependenciesMeta, bin } = createRequire(import.meta.url)(
  '../../package.json',
) as Record<'devDependencies' | 'peerDependenciesMeta' | 'bin', Record<string, string>>;

const text = await readFile(join(ROOT, 'examples/Containerfile'), 'utf8');
const lines = text.replaceAll(/\\\n\s*/g, '').split('\n');
const argument = (name: string): string =>
  new RegExp(`^ARG ${name}="?([^"\n]*)"?$`, 'm').exec(text)![1]!;

test('the image copies existing paths, and nothing else is sent to the builder', async () => {
  const copied = lines
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap((line) => line.split(' ').slice(1, -1));
  expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);

  const ignored = await readFile(join(ROOT, 'examples/Containerfile.dockerignore'), 'utf8');
  const sent = [...ignored.matchAll(/^!(.*)$/gm)].map(([, path]) => path);
  expect(new Set(sent)).toEqual(new Set(copied));
  expect(ignored).toMatch(/^\*$/m);
});

test('the image has the Node, the version and the peers of the package', () => {
  const [major] = devDependencies['node']!.split('.');
  expect(argument('NODE_IMAGE')).toBe(`docker.io/library/node:${major}-slim`);
  expect(argument('VERSION')).toBe(packageVersion());
  const peers = argument('PEERS').split(' ');
  expect(Object.keys(peerDependenciesMeta)).toEqual(expect.arrayContaining(peers));
  expect(text).toContain(`ln -s /app/${bin['service-local']} /usr/local/bin/service-local`);
});

test('the image has the user whom the chart and the runners name', async () => {
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(text)!;
  const context = { runAsUser: Number(user), runAsGroup: Number(group), fsGroup: Number(group) };
  const pods = [...(await render({})), ...manifests(testPlan())].flatMap((object) => {
    const { kind, spec } = object as unknown as {
      kind: string;
      spec: { template: { spec: { securityContext: object } } };
    };
    return kind === 'Deployment' ? [spec.template.spec.securityContext] : [];
  });
  expect(pods).toEqual([context, context, context].map((each) => expect.objectContaining(each)));
});
