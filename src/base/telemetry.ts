import { ServiceError } from './errors.ts';
import type { EndTelemetry, TelemetryOptions } from './telemetry-options.ts';

/**
 * Exports traces and metrics with OpenTelemetry if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Its packages
 * are loaded only then.
 *
 * @throws ServiceError `invalid_setting` for a wrong variable; `conflict` with the reason
 *   `not_installed` without the packages.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<EndTelemetry> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: disabled } = options.env;
  if (!endpoint || disabled === 'true') return async () => {};
  if (!/^https?:$/.test(URL.parse(endpoint)?.protocol ?? '')) {
    throw new ServiceError('invalid_setting', 'OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP URL', {
      remedy: 'Set it to the OTLP/HTTP address of the collector, such as http://127.0.0.1:4318.',
    });
  }
  const { exportTelemetry } = await load();
  return exportTelemetry(endpoint, options);
}

async function load(): Promise<typeof import('./open-telemetry.ts')> {
  try {
    return await import('./open-telemetry.ts');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new ServiceError(
      'conflict',
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages of OpenTelemetry are not installed',
      {
        reason: 'not_installed',
        remedy: `Run \`npm install ${PACKAGES.join(' ')}\` where service-local is installed, or unset the variable.`,
        cause: error,
      },
    );
  }
}

const PACKAGES = [
  '@opentelemetry/api',
  '@opentelemetry/exporter-metrics-otlp-http',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/sdk-trace',
];
