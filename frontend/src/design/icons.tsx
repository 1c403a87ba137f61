/** The few drawings of the dashboard, as inline SVG in the colour of their text. */

/** The brand: a stem with a graft. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" aria-hidden="true">
      <path d="M16 29V12" />
      <path d="M16 21C16 15.500 11.500 13 6 13c0 5.500 4.500 8 10 8Z" fill="currentColor" fillOpacity="0.18" strokeLinejoin="round" />
      <path d="M16 14c0-5.500 4.500-9 10-9 0 5.500-4.500 9-10 9Z" fill="currentColor" fillOpacity="0.18" strokeLinejoin="round" />
    </svg>
  );
}

/** What stands above an empty list. */
export function Seedling() {
  return (
    <svg width="56" height="40" viewBox="0 0 56 40" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d="M4 33c8-4 40-4 48 0" />
      <path d="M28 31V17" />
      <path d="M28 22c0-4.500-3.500-7-9-7 0 4.500 3.500 7 9 7ZM28 18c0-5 3.500-8 9-8 0 5-3.500 8-9 8Z" />
    </svg>
  );
}
