/** The shape of what is being loaded. */

export function Skeleton({ what, lines = 4 }: { what: string; lines?: number }) {
  return (
    <div className="skeleton" role="status">
      <p className="hidden">Loading {what} …</p>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} aria-hidden="true" />
      ))}
    </div>
  );
}
