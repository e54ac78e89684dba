package offline

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// rewardKey is a row of a request.
type rewardKey struct {
	request string
	row     int32
}

// earned is the reward of a decision, and how many decisions have taken it.
type earned struct {
	reward float64
	taken  int
}

// readRewards reads a table of rewards: a file in CSV, JSON lines or Parquet with the columns
// request and reward, and perhaps row. Errors name file and line, or row.
func readRewards(path string) (map[rewardKey]*earned, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("rewards: %w", err)
	}
	// Closing a file that was read cannot lose anything.
	defer f.Close()
	list := map[rewardKey]*earned{}
	add := func(request string, row int64, reward float64) error {
		k := rewardKey{request, int32(row)}
		switch {
		case request == "":
			return errors.New("request: it is empty, expected the id of an answer")
		case row < 0 || int64(k.row) != row:
			return fmt.Errorf("row: %d, expected a row of a request, from 0", row)
		case reward-reward != 0:
			return fmt.Errorf("reward: %g, expected a finite number", reward)
		case list[k] != nil:
			return fmt.Errorf("request %q, row %d: it has a reward already", request, row)
		}
		list[k] = &earned{reward: reward}
		return nil
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		err = rewardsCSV(f, add)
	case ".jsonl":
		err = rewardsJSON(f, add)
	case ".parquet":
		err = rewardsParquet(f, add)
	default:
		err = fmt.Errorf("the name ends in %q, expected .csv, .jsonl or .parquet", ext)
	}
	if err == nil && len(list) == 0 {
		err = errors.New("there is no reward in it")
	}
	if err != nil {
		return nil, fmt.Errorf("rewards: %s: %w", path, err)
	}
	return list, nil
}

// rewardColumns finds the columns of a table; that of the row is -1 where there is none.
func rewardColumns(names []string) (request, row, reward int, err error) {
	at := func(name string) int { return slices.Index(names, name) }
	request, row, reward = at(decisionlog.RequestColumn), at(decisionlog.RowColumn), at(rewardColumn)
	if request < 0 || reward < 0 {
		err = fmt.Errorf("it has the columns %q, expected request and reward, and perhaps row", names)
	}
	return request, row, reward, err
}

func rewardsCSV(r io.Reader, add func(string, int64, float64) error) error {
	c := csv.NewReader(r)
	header, err := c.Read()
	if err == io.EOF {
		return errors.New("it is empty, expected a line with the names of the columns")
	}
	if err != nil {
		return err
	}
	request, row, reward, err := rewardColumns(header)
	if err != nil {
		return err
	}
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := c.FieldPos(0)
		k := int64(0)
		if row >= 0 {
			if k, err = strconv.ParseInt(fields[row], 10, 32); err != nil {
				return fmt.Errorf("line %d: row: %q, expected a whole number", line, fields[row])
			}
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(fields[reward]), 64)
		if err != nil {
			return fmt.Errorf("line %d: reward: %q, expected a number", line, fields[reward])
		}
		if err := add(fields[request], k, x); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func rewardsJSON(r io.Reader, add func(string, int64, float64) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for line := 1; in.Scan(); line++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var x struct {
			Request string   `json:"request"`
			Row     int64    `json:"row"`
			Reward  *float64 `json:"reward"`
		}
		err := json.Unmarshal(in.Bytes(), &x)
		if err == nil && x.Reward == nil {
			err = errors.New("reward: required, what the decision earned")
		}
		if err == nil {
			err = add(x.Request, x.Row, *x.Reward)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return in.Err()
}

func rewardsParquet(f *os.File, add func(string, int64, float64) error) error {
	file, err := parquetfile.Open(f)
	if err != nil {
		return err
	}
	request, row, reward, err := rewardColumns(file.Names())
	if err != nil {
		return err
	}
	at := 0
	for g := range file.Groups() {
		ids, err := file.Column(g, request)
		if err != nil {
			return err
		}
		defer ids.Release()
		values, err := file.Column(g, reward)
		if err != nil {
			return err
		}
		defer values.Release()
		id, ok := ids.(*array.String)
		x, okay := values.(*array.Float64)
		if !ok || !okay {
			return fmt.Errorf("request and reward are of %v and %v, expected utf8 and float64", ids.DataType(), values.DataType())
		}
		number := func(int) int64 { return 0 }
		if row >= 0 {
			rows, err := file.Column(g, row)
			if err != nil {
				return err
			}
			defer rows.Release()
			switch a := rows.(type) {
			case *array.Int32:
				number = func(i int) int64 { return int64(a.Value(i)) }
			case *array.Int64:
				number = a.Value
			default:
				return fmt.Errorf("row is of %v, expected int32 or int64", rows.DataType())
			}
		}
		for i := range file.Rows(g) {
			err := error(nil)
			if id.IsNull(i) || x.IsNull(i) {
				err = errors.New("a value is missing")
			} else {
				err = add(id.Value(i), number(i), x.Value(i))
			}
			if err != nil {
				return fmt.Errorf("row %d of the file: %w", at+i, err)
			}
		}
		at += file.Rows(g)
	}
	return nil
}
