package exchange

import (
	"encoding/binary"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Verdict says why the rows with a key fail, although no answer is stored.
type Verdict struct {
	Hash   answers.Hash
	Reason string
}

const verdictsMagic = "ldverd\x00\x01"

// EncodeVerdicts encodes verdicts, which are ordered by their hashes.
func EncodeVerdicts(verdicts []Verdict) []byte {
	data := binary.AppendUvarint([]byte(verdictsMagic), uint64(len(verdicts)))
	for _, v := range verdicts {
		data = fields.Append(append(data, v.Hash[:]...), v.Reason)
	}
	return binary.LittleEndian.AppendUint32(data, checksum(data))
}

// DecodeVerdicts decodes verdicts. name is for errors.
func DecodeVerdicts(name string, data []byte) ([]Verdict, error) {
	d, err := checked(name, data, verdictsMagic)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, d.Count())
	for i := range verdicts {
		v := Verdict{Hash: answers.ReadHash(d), Reason: d.Text()}
		if d.Broken || i > 0 && v.Hash.Compare(verdicts[i-1].Hash) <= 0 {
			return nil, damaged(name, "impossible verdict")
		}
		verdicts[i] = v
	}
	return verdicts, decoded(d, name)
}
