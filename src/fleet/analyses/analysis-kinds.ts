const ANALYSIS_KINDS = ['sweep', 'walk_forward', 'robustness'] as const;

export type AnalysisKind = (typeof ANALYSIS_KINDS)[number];

export function isAnalysis(kind: string): kind is AnalysisKind {
  return ANALYSIS_KINDS.some((one) => one === kind);
}
