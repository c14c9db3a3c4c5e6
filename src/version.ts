import { createRequire } from 'node:module';

/** The version in this package's package.json; the package finds it by its own name, in `dist/` too. */
export function packageVersion(): string {
  const { version } = createRequire(import.meta.url)('service-local/package.json') as {
    version: string;
  };
  return version;
}
