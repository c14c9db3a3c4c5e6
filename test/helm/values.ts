/** Values of the chart as installations have them. */
export const VALUES = {
  default: {},
  minimal: {
    server: { replicas: 1, resources: { limits: null } },
    worker: { replicas: 0 },
    settings: { workers: null },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
  },
  'public licensing': {
    image: {
      repository: 'registry.example:5000/service-local',
      digest: `sha256:${'a'.repeat(64)}`,
    },
    database: { existingSecret: 'postgres-app', key: 'uri', caSecret: 'postgres-ca', port: 6432 },
    signingKey: { existingSecret: 'signing' },
    catalogue: { existingClaim: 'catalogue' },
    archive: { existingClaim: 'event-archive', schedule: '30 3 1 * *' },
    settings: {
      license_ttl_max_seconds: 7_776_000,
      license_clone_policy: 'refuse',
      strategy_timeout_seconds: 2.5,
      custom_code: true,
      custom_code_memory_mb: 1024,
      chat_provider: 'anthropic',
      chat_model: 'a-model',
    },
    exchanges: { binance: { ccxt: 'binance' } },
    research: { existingSecret: 'research' },
    knowledge: {
      instances: [{ name: 'tokyo', url: 'https://tokyo.example', token_env: 'TOKYO_TOKEN' }],
    },
    notifications: {
      channels: {
        operations: { type: 'webhook', url: 'https://hooks.example/', secret_env: 'OPS_SECRET' },
      },
    },
    ingress: {
      enabled: true,
      className: 'nginx',
      host: 'bots.example.com',
      tlsSecret: 'bots-tls',
      annotations: { 'nginx.ingress.kubernetes.io/proxy-buffering': 'off' },
    },
    networkPolicy: {
      ingressFrom: [
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } },
      ],
    },
  },
  deployments: {
    image: { tag: '1.2.3', pullSecrets: ['registry'] },
    license: { existingSecret: 'license', root: `${'Az0_-9'.repeat(7)}A` },
    kubeconfigs: { existingSecret: 'kubeconfigs' },
    clusters: {
      tokyo: {
        kubeconfig: '/etc/service-local/kubeconfigs/tokyo',
        owner: 'customer',
        namespace: 'bots',
        image: 'registry.example/service-local:1',
        control_url: 'https://bots.example.com',
      },
    },
    telemetry: { endpoint: 'http://collector.monitoring:4318', headersSecret: 'collector' },
    deployments: { enabled: true, namespaces: ['bots', 'bots-staging'], storageClass: 'fast' },
    server: {
      publicUrl: 'https://bots.example.com',
      podAnnotations: { 'example.com/team': 'trading' },
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'trading', operator: 'Exists', effect: 'NoSchedule' }],
    },
    networkPolicy: {
      ingressFrom: [{ podSelector: {} }],
      extraEgress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }],
    },
  },
};
